"""Operations of torch whose derivatives its forward mode computes wrongly, slowly or not at all, written in others."""
