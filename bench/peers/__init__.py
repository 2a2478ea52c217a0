"""Other engines on the same streams and queries: `python -m bench peers`. None of their code is here."""
