"""The parts of `compare_answers.py`: what two checkouts are asked, and how answers are compared."""
