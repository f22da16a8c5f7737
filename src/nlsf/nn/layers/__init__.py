"""The filters as layers, and the spectra that they ask for."""
