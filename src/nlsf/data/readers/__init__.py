"""Readers of the publishers' files, one format a module.

A function ``read(entry, paths, **options)`` turns the located files of a catalogue entry into a
`Dataset`. Files are untrusted: nothing in them is executed, and what does not fit is refused with
a `FormatError` that names the file and the field.
"""
