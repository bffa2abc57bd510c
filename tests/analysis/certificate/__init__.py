"""The criteria of certificates, one by one."""
