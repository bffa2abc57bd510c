"""What `profharness mcp` offers to agents: its answers as records, its tools, and their limits."""
