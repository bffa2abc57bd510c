"""The hooks inside the workload's own Python processes: arming, recording, the log of steps."""
