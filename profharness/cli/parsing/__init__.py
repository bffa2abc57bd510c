"""How a line becomes a call: commands made of declared options, help by topic, shell completion."""
