"""A plan to the text of all files; emit.files is the only module that writes."""
