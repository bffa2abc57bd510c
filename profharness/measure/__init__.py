"""The measuring half: plan the passes of a run, execute each one, record what happened. Read
`engine` first.
"""
