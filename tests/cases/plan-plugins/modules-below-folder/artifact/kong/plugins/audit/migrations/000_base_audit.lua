return { postgres = { up = [[]] } }
