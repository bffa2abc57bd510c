"""What a user can ask for: every option of the command line and of scan files, with its checks."""
