"""The parts of `compare_answers.py`: what is asked of two checkouts, how it is asked, and how the answers are compared."""
