"""Models that others have trained: opened as ours, and written back (chapter on models of others)."""

from plainformer.pretrained.gguf_files import read_gguf as read_gguf
from plainformer.pretrained.reactions import (
    NumberedReaction as NumberedReaction,
    atom_places as atom_places,
    map_atoms as map_atoms,
    read_numbered as read_numbered,
)
from plainformer.pretrained.smiles import SmilesTokenizer as SmilesTokenizer, packaged_folder as packaged_folder
