"""The outputs of rocprofv3: CSV, JSON and rocpd databases, all with one builder of tables."""
