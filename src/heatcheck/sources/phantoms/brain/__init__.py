"""How a head with a tumour is drawn in four modalities."""
