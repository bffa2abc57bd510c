"""What a node is: its devices, tools, permissions and CPUs, and the ceilings of each device."""
