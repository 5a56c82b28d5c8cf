"""Seventeen reactions of textbooks, with the atoms numbered by hand that go from what is put in to what comes out."""

# An atom has the same number on both sides of the arrow. Atoms that nothing tells apart, such as the two carbons beside
# one in a ring of benzene, share a number. Atoms that leave, and those of helpers, have none.
TEXTBOOK = {
    "thioether": "[CH3:1][CH:2]([CH3:1])[SH:4].CN(C)C=O.F[c:5]1[n:6][cH:7][cH:8][cH:9][c:10]1[F:11].O=C([O-])[O-]"
    ".[K+].[K+]>>[CH3:1][CH:2]([CH3:1])[S:4][c:5]1[n:6][cH:7][cH:8][cH:9][c:10]1[F:11]",
    "esterification": "[CH3:1][C:2](=[O:3])[OH:3].[OH:4][CH2:5][CH3:6].OS(=O)(=O)O>>"
    "[CH3:1][C:2](=[O:3])[O:4][CH2:5][CH3:6]",
    "substitution": "[CH3:1][CH2:2][CH2:3][CH2:4]Br.[Na+].[C-:5]#[N:6]>>[CH3:1][CH2:2][CH2:3][CH2:4][C:5]#[N:6]",
    "ether": "[OH:1][c:2]1[cH:3][cH:4][cH:5][cH:4][cH:3]1.[CH3:6]I.O=C([O-])[O-].[K+].[K+]>>"
    "[CH3:6][O:1][c:2]1[cH:3][cH:4][cH:5][cH:4][cH:3]1",
    "Suzuki": "[CH3:1][O:2][c:3]1[cH:4][cH:5][c:6](Br)[cH:5][cH:4]1.OB(O)[c:7]1[cH:8][cH:9][cH:10][cH:9][cH:8]1"
    ".O=C([O-])[O-].[Na+].[Na+]>>[CH3:1][O:2][c:3]1[cH:4][cH:5][c:6](-[c:7]2[cH:8][cH:9][cH:10][cH:9][cH:8]2)"
    "[cH:5][cH:4]1",
    "amide": "[O:1]=[C:2]([OH:1])[c:3]1[cH:4][cH:5][cH:6][cH:5][cH:4]1"
    ".[NH2:7][CH2:8][c:9]1[cH:10][cH:11][cH:12][cH:11][cH:10]1>>"
    "[O:1]=[C:2]([NH:7][CH2:8][c:9]1[cH:10][cH:11][cH:12][cH:11][cH:10]1)[c:3]1[cH:4][cH:5][cH:6][cH:5][cH:4]1",
    "reduction": "[CH3:1][C:2](=[O:3])[c:4]1[cH:5][cH:6][cH:7][cH:6][cH:5]1.[BH4-].[Na+].CO>>"
    "[CH3:1][CH:2]([OH:3])[c:4]1[cH:5][cH:6][cH:7][cH:6][cH:5]1",
    "Grignard": "[O:3]=[CH:2][c:4]1[cH:5][cH:6][cH:7][cH:6][cH:5]1.[CH3:1][Mg]Br.C1CCOC1>>"
    "[CH3:1][CH:2]([OH:3])[c:4]1[cH:5][cH:6][cH:7][cH:6][cH:5]1",
    "Diels-Alder": "[CH2:1]=[CH:2][CH:2]=[CH2:1].[O:3]=[C:4]1[CH:5]=[CH:5][C:4](=[O:3])[O:6]1>>"
    "[O:3]=[C:4]1[O:6][C:4](=[O:3])[CH:5]2[CH2:1][CH:2]=[CH:2][CH2:1][CH:5]12",
    "Friedel-Crafts": "[CH3:1][C:2](=[O:3])Cl.[cH:4]1[cH:4][cH:4][cH:4][cH:4][cH:4]1.[Al](Cl)(Cl)Cl>>"
    "[CH3:1][C:2](=[O:3])[c:4]1[cH:4][cH:4][cH:4][cH:4][cH:4]1",
    "nitration": "[CH3:1][c:2]1[cH:3][cH:4][cH:5][cH:4][cH:3]1.[O:6]=[N+:7]([O-:6])[OH:6].OS(=O)(=O)O>>"
    "[CH3:1][c:2]1[cH:3][cH:4][c:5]([N+:7](=[O:6])[O-:6])[cH:4][cH:3]1",
    "protection": "[NH2:1][c:2]1[cH:3][cH:4][cH:5][cH:4][cH:3]1.[CH3:6][C:7]([CH3:6])([CH3:6])[O:8][C:9](=[O:10])O"
    "[C:9](=[O:10])[O:8][C:7]([CH3:6])([CH3:6])[CH3:6]>>"
    "[CH3:6][C:7]([CH3:6])([CH3:6])[O:8][C:9](=[O:10])[NH:1][c:2]1[cH:3][cH:4][cH:5][cH:4][cH:3]1",
    "Sonogashira": "I[c:1]1[cH:2][cH:3][cH:4][cH:3][cH:2]1.[CH:5]#[C:6][CH2:7][OH:8].CCN(CC)CC>>"
    "[OH:8][CH2:7][C:6]#[C:5][c:1]1[cH:2][cH:3][cH:4][cH:3][cH:2]1",
    "benzylamine": "O=[CH:1][c:2]1[cH:3][cH:4][cH:5][cH:4][cH:3]1.[CH3:6][NH2:7].[BH3-]C#N.[Na+]>>"
    "[CH3:6][NH:7][CH2:1][c:2]1[cH:3][cH:4][cH:5][cH:4][cH:3]1",
    "Wittig": "O=[C:1]1[CH2:2][CH2:3][CH2:4][CH2:3][CH2:2]1.[CH2:5]=P(c1ccccc1)(c1ccccc1)c1ccccc1>>"
    "[CH2:5]=[C:1]1[CH2:2][CH2:3][CH2:4][CH2:3][CH2:2]1",
    "Claisen": "[CH2:1]=[CH:2][CH2:3][O:4][c:5]1[cH:6][cH:7][cH:8][cH:7][cH:6]1>>"
    "[CH2:3]=[CH:2][CH2:1][c:6]1[cH:7][cH:8][cH:7][cH:6][c:5]1[OH:4]",
    "Baeyer-Villiger": "[O:1]=[C:2]1[CH2:3][CH2:4][CH2:5][CH2:4][CH2:3]1.O=C(O[OH:6])c1cccc(Cl)c1>>"
    "[O:1]=[C:2]1[CH2:3][CH2:4][CH2:5][CH2:4][CH2:3][O:6]1",
}


def textbook_reactions() -> dict[str, str]:
    """Reactions by name, in SMILES, with numbers of the atoms that stay: `[CH3:1]` is the same carbon on both sides.

    Atoms that nothing tells apart share a number. The first is from the README of rxnmapper, with one ring
    written the other way round; all maps were checked by hand, with those that textbooks of organic chemistry give.

    Example:
        >>> list(pf.data.textbook_reactions())[:3]
        ['thioether', 'esterification', 'substitution']
    """
    return dict(TEXTBOOK)
