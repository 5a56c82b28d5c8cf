"""Exercises of the chapter `seq2seq`: cross-attention, what a decoder reads and writes, a loss with smoothed labels."""
