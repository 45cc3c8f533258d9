"""What does the paper on JP2 (PPPJ 2011) print of its cost? Numbers that docs/exact-costs.md has beside those that are measured here."""

# Table 2: nodes of the calling context tree, with call sites, with native methods; bytecodes of a basic block.
NODES = {
    "avrora": (93_756, 187_148, 209_391, 5.94),
    "batik": (29_843, 567_288, 632_860, 7.37),
    "eclipse": (13_667_546, 20_941_526, 21_709_963, 5.24),
    "fop": (263_951, 602_522, 667_264, 4.84),
    "h2": (142_569, 328_960, 354_491, 4.49),
    "jython": (10_481_382, 21_147_785, 23_167_434, 5.18),
    "luindex": (77_963, 235_326, 250_349, 5.74),
    "lusearch": (56_927, 91_302, 96_443, 6.12),
    "pmd": (3_364_241, 4_362_234, 4_602_711, 5.05),
    "sunflow": (81_264, 348_723, 385_653, 9.38),
    "tradebeans": (4_045_407, 6_673_170, 7_445_191, 5.43),
    "tradesoap": (4_299_644, 7_060_342, 7_885_183, 5.45),
    "xalan": (224_665, 387_423, 418_536, 10.74),
}

# Table 3: times as a multiple of those without profiling: the tree, with call sites, with native methods, with basic blocks.
OVERHEADS = {
    "avrora": (8.74, 9.19, 19.26, 30.17),
    "batik": (3.62, 4.54, 9.78, 19.28),
    "eclipse": (4.73, 5.51, 13.51, 25.94),
    "fop": (6.34, 8.31, 15.77, 31.04),
    "h2": (10.63, 11.91, 37.46, 71.14),
    "jython": (10.02, 17.38, 68.12, 94.44),
    "luindex": (9.60, 10.14, 28.59, 59.81),
    "lusearch": (22.04, 19.16, 27.88, 56.96),
    "pmd": (3.87, 4.27, 7.76, 12.31),
    "sunflow": (41.18, 31.06, 63.76, 102.34),
    "tradebeans": (6.71, 8.41, 16.52, 16.94),
    "tradesoap": (5.15, 5.01, 9.16, 16.52),
    "xalan": (11.38, 14.41, 19.16, 23.39),
}
MEAN = (8.55, 9.63, 20.55, 34.21)
