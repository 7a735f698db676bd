"""Tree ensembles: source ops (float meaning), lowering passes, machine ops (one C kernel each)."""
