"""Plots of the HTML report, and figures for papers."""
