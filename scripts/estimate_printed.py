"""What do the papers on estimates print? Numbers that docs/estimates.md has beside those that are measured here."""

CACHES = [(size, blocks) for size in (1024, 2048, 4096) for blocks in (4, 8, 16)]

# CProf, table 1: cycles of the hardware and of CProf, by CACHES.
CPROF = {
    "Kfl": (
        [58_600_769, 57_433_890, 56_821_578, 58_600_769, 57_142_061, 56_361_230, 58_600_769, 57_142_061, 54_512_933],
        [60_137_802, 58_679_094, 56_071_896] * 3,
    ),
    "UdpIp": (
        [123_670_263, 122_280_263, 120_100_263, 123_670_263, 121_500_263, 117_040_276, 123_670_263, 121_500_263, 117_040_276],
        [123_650_110, 121_110_110, 117_120_110] * 3,
    ),
    "Lift": (
        [55_270_135, 55_270_135, 55_160_135, 55_270_135, 55_160_135, 53_280_314, 55_270_135, 55_160_135, 53_280_250],
        [56_750_036, 57_029_997, 54_800_220] * 3,
    ),
}
# Errors in percent of this method over the paper's own programs, against the printed cycles: a run apart from this one, of JOP's table of May
# 2008, with the programs compiled by ecj. Their licence does not allow them here.
OF_THE_PROGRAMS = {
    "Kfl": [0.35, 0.36, 0.37, 0.35, 0.36, 0.37, 0.35, 0.36, 0.40],
    "UdpIp": [0.07, 0.11, 0.19, 0.07, 0.16, 0.33, 0.07, 0.16, 0.33],
    "Lift": [-0.57, -0.57, -0.57, -0.57, -0.57, -0.44, -0.57, -0.57, -0.44],
}

# CProf, table 2: factors without calls and returns, with them, with the cache.
CPROF_OVERHEAD = {
    "kfl": (3.89, 5.51, 13.60),
    "udpIp": (4.08, 7.10, 15.28),
    "lift": (5.01, 7.37, 12.80),
    "JBE, geometric mean": (4.30, 6.60, 13.85),
    "compress": (2.59, 3.47, 7.17),
    "jess": (4.19, 5.49, 14.16),
    "db": (1.33, 1.54, 2.94),
    "javac": (4.10, 4.60, 8.53),
    "mpegaudio": (2.88, 3.72, 7.75),
    "mtrt": (9.99, 14.18, 47.54),
    "jack": (2.36, 2.90, 5.43),
    "JVM98, geometric mean": (3.27, 4.13, 9.08),
}

# JP2 (PPPJ 2011), table 1, in million cycles: pessimistic miss and hit, optimistic miss and hit, hardware.
JP2 = {
    "Kfl": (72.28, 51.94, 66.88, 48.49, 48.24),
    "Lift": (61.08, 52.90, 56.22, 49.26, 48.42),
    "UdpIp": (140.46, 113.64, 131.44, 108.16, 108.60),
    "Matrix": (75.31, 74.83, 70.89, 70.48, 69.42),
    "Queens": (262.21, 209.51, 236.22, 197.21, 199.32),
    "AES": (566.67, 513.30, 556.19, 509.10, 454.62),
}


class Timing:
    """Platform Independent Timing of Java Virtual Machine Bytecode Instructions (ENTCS 220, 2008): what its text prints."""

    INSTRUCTIONS = 137
    R = 0.9887898
    SLOPE = 1.232
    INTERCEPT_NS = 0.9344
    OUTLIERS = 13
    CLUSTERS = {"min": 24, "median": 11, "max": 1}
    # Of the instructions, in the three largest clusters at the median.
    IN_THREE = 124
    # Hours of a sequence of 1e-5 s by a clock of 1e-3 s, for 4 digits, and years for 6.
    HOURS_OF_FOUR = 1.05
    YEARS_OF_SIX = 1.2
    # The line predicts so much more than the counter has measured.
    RESIDUALS = "frem +21.81 ns, drem +16.70 ns"
