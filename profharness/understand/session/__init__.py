"""Runs and trace files as objects for notebooks and scripts: what `import profharness` gives."""
