"""What must org.example.scene return? The same solids, and of each row of each triangle the pixels within its sides, in Python's integers."""

from math import isqrt

from .arithmetic import divide, mix
from .cradle import HEIGHT, WIDTH, Canvas, blend, mul

TURN, FOCAL, LIGHT, FRAMES = 1024, 260 * 256, (-1900, 2700, -2400), 12


def units(hundredths):
    return divide(hundredths * 65536, 100)


def sine(angle):
    """A quotient of parabolas in the upper half turn, and its mirror image in the lower."""
    angle %= TURN
    product = angle % 512 * (512 - angle % 512)
    value = product * 16 * 65536 // (5 * 512 * 512 - 4 * product)
    return value if angle < 512 else -value


def cosine(angle):
    return sine(angle + TURN // 4)


class Rotation:
    """A matrix of three rows."""

    def __init__(self, yaw, pitch):
        cos_yaw, sin_yaw, cos_pitch, sin_pitch = cosine(yaw), sine(yaw), cosine(pitch), sine(pitch)
        self.rows = (
            (cos_yaw, 0, sin_yaw),
            (mul(sin_pitch, sin_yaw), cos_pitch, -mul(sin_pitch, cos_yaw)),
            (-mul(cos_pitch, sin_yaw), sin_pitch, mul(cos_pitch, cos_yaw)),
        )

    def turn(self, point):
        return [sum(mul(factor, value) for factor, value in zip(row, point)) for row in self.rows]


def direction(corners):
    """The normal of a quadrangle, 4096 long, from its diagonals; none of one without area."""
    a, b, c, d = corners
    u, v = [q - p for p, q in zip(a, c)], [q - p for p, q in zip(b, d)]
    cross = [(u[i - 2] * v[i - 1] - u[i - 1] * v[i - 2]) >> 16 for i in range(3)]
    length = isqrt(sum(value * value for value in cross))
    return [divide(value * 4096, length) for value in cross] if length else [0, 0, 0]


class Mesh:
    """Faces of (corners, normal, color), the corners being points."""

    def __init__(self):
        self.faces = []

    def face(self, corners, color):
        self.faces.append((corners, direction(corners), color))

    def box(self, center, half, high, sides, tops, fronts):
        sizes = (half, high, half)
        at = {}
        for number in range(8):
            at[number] = tuple(c + (s if number >> axis & 1 else -s) for axis, (c, s) in enumerate(zip(center, sizes)))
        for numbers, color in (((0, 2, 3, 1), fronts), ((4, 5, 7, 6), fronts), ((1, 3, 7, 5), sides),
                               ((0, 4, 6, 2), sides), ((2, 6, 7, 3), tops), ((0, 1, 5, 4), tops)):  # fmt: skip
            self.face([at[number] for number in numbers], color)

    def rings(self, rings, clockwise, color):
        """The skin of rings of points."""
        for low, high in zip(rings, rings[1:]):
            for i, here in enumerate(low):
                j = (i + 1) % len(low)
                corners = [here, high[i], high[j], low[j]]
                self.face(corners if clockwise else [here, low[j], high[j], high[i]], color)


def curve(p, q, r, at, steps):
    rest = steps - at
    return divide(units(p * rest**2 + 2 * q * at * rest + r * at**2), steps**2)


def lathe(mesh, points, steps, color):
    (r0, y0), (r1, y1), (r2, y2) = points
    rings = []
    for step in range(steps + 1):
        radius, height = curve(r0, r1, r2, step, steps), curve(y0, y1, y2, step, steps) - units(90)
        rings.append([(mul(radius, cosine(64 * side)), height, mul(radius, sine(64 * side))) for side in range(16)])
    mesh.rings(rings, True, color)


def tube(mesh, points, thick, thin, steps):
    (x0, y0), (x1, y1), (x2, y2) = points
    rings = []
    for step in range(steps + 1):
        rest = steps - step
        x, y = curve(x0, x1, x2, step, steps), curve(y0, y1, y2, step, steps) - units(90)
        dx, dy = (x1 - x0) * rest + (x2 - x1) * step, (y1 - y0) * rest + (y2 - y1) * step
        length, radius = isqrt(dx * dx + dy * dy), divide(units(thick * rest + thin * step), steps)
        ring = []
        for side in range(8):
            out = mul(radius, cosine(128 * side))
            ring.append((x - divide(out * dy, length), y + divide(out * dx, length), mul(radius, sine(128 * side))))
        rings.append(ring)
    mesh.rings(rings, False, 0xE8E4D8)


class Screen(Canvas):
    """The framebuffer with its depths."""

    def __init__(self, top, bottom):
        super().__init__()
        self.clear(top, bottom)
        self.depths = [[0] * WIDTH for _ in range(HEIGHT)]
        self.alpha, self.fog = 256, None

    def in_fog(self, color, depth):
        if not self.fog:
            return color
        near, far, fog = self.fog
        return blend(color, fog, min(max(((1 << 36) // depth - near) * 256, 0) // (far - near), 256))

    def paint(self, x, y, depth, color):
        if depth > self.depths[y][x]:
            color = self.in_fog(color, depth)
            if self.alpha < 256:
                self.pixels[y][x] = blend(self.pixels[y][x], color, self.alpha)
            else:
                self.pixels[y][x], self.depths[y][x] = color, depth

    def triangle(self, corners, color):
        """Corners are (x, y, depth)."""

        def side(p, q, x, y):
            return (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])

        a, b, c = corners
        area = side(a, b, c[0], c[1])
        if area <= 0:
            return
        xs, ys = [corner[0] for corner in corners], [corner[1] for corner in corners]
        for row in range(max(min(ys) >> 8, 0), min((max(ys) >> 8) + 1, HEIGHT)):
            first, end = max(min(xs) >> 8, 0), min((max(xs) >> 8) + 1, WIDTH)
            for p, q in ((b, c), (c, a), (a, b)):
                # In column x the side is at_0 - slope * x; on the edge itself are the pixels to the right of it or below it.
                at_0, slope = side(p, q, 128, row * 256 + 128), (q[1] - p[1]) * 256
                at_0 -= 0 if slope < 0 or (slope == 0 and q[0] > p[0]) else 1
                if slope > 0:
                    end = min(end, at_0 // slope + 1)
                elif slope < 0:
                    first = max(first, -(at_0 // -slope))
                elif at_0 < 0:
                    end = first
            for x in range(first, end):
                at = x * 256 + 128, row * 256 + 128
                depth = side(b, c, *at) * a[2] + side(c, a, *at) * b[2] + side(a, b, *at) * c[2]
                self.paint(x, row, depth // area, color)

    def draw(self, mesh, rotation, place):
        """A mesh turned and moved, lit and projected."""

        def projected(point):
            x, y, z = (value + offset for value, offset in zip(rotation.turn(point), place))
            return WIDTH * 128 + divide(x * FOCAL, z), HEIGHT * 128 - divide(y * FOCAL, z), (1 << 36) // z

        for corners, normal, color in mesh.faces:
            light = sum(value * toward for value, toward in zip(rotation.turn(normal), LIGHT))
            bright = min(80 + (light >> 12) * 176 // 4096, 256) if light > 0 else 80
            shaded = sum(((color >> shift & 255) * bright >> 8) << shift for shift in (0, 8, 16))
            a, b, c, d = map(projected, corners)
            self.triangle((a, b, c), shaded)
            self.triangle((a, c, d), shaded)


def cube(frame):
    mesh = Mesh()
    for i in range(27):
        center = [units(66 * (i // 3**axis % 3 - 1)) for axis in range(3)]
        mesh.box(center, units(30), units(30), 0xD04030, 0xF0E0A0 - i * 0x020304, 0x3060C0 + i * 0x020200)
    screen = Screen(0x101820, 0x405060)
    screen.draw(mesh, Rotation(frame * 9 + 100, frame * 5 + 80), (0, 0, units(420)))
    return screen


def blending(frame):
    screen = Screen(0x302838, 0x080810)
    for half, colors, turns, alpha in (
        (40, (0xE0C040, 0xF0F0F0, 0xC06020), (-frame * 12, frame * 7), 256),
        (75, (0x40C060, 0x60E0A0, 0x208050), (frame * 8 + 60, -frame * 6), 128),
        (110, (0x5080E0, 0x80B0FF, 0x3050B0), (frame * 3 + 120, 90), 80),
    ):
        mesh = Mesh()
        mesh.box((0, 0, 0), units(half), units(half), *colors)
        screen.alpha = alpha
        screen.draw(mesh, Rotation(*turns), (0, 0, units(420)))
    return screen


def fog(frame):
    pillar = Mesh()
    pillar.box((0, 0, 0), units(35), units(150), 0xA08060, 0xC0B0A0, 0x806040)
    screen = Screen(0x9098A0, 0xA0A8B0)
    screen.fog = (units(300), units(1700), 0x98A0A8)
    for row in range(7, -1, -1):
        for x in (-units(130), units(130)):
            screen.draw(pillar, Rotation(frame * 4, 0), (x, 0, units(300 + row * 200 - frame * 10)))
    return screen


def teapot(frame):
    mesh = Mesh()
    lathe(mesh, ((0, 0), (50, 0), (90, 0)), 2, 0x4868B0)
    lathe(mesh, ((90, 0), (150, 40), (120, 100)), 5, 0xE8E4D8)
    lathe(mesh, ((120, 100), (105, 130), (72, 134)), 4, 0x4868B0)
    lathe(mesh, ((72, 134), (50, 160), (10, 162)), 4, 0xE8E4D8)
    lathe(mesh, ((10, 162), (34, 182), (0, 188)), 3, 0x4868B0)
    tube(mesh, ((110, 40), (175, 35), (200, 140)), 26, 12, 6)
    tube(mesh, ((-92, 112), (-260, 120), (-118, 34)), 11, 11, 8)
    screen = Screen(0x60A0E0, 0xD0E8F8)
    place = (sine(frame * 11), divide(sine(frame * 17 + 200), 2), units(560) + cosine(frame * 7))
    screen.draw(mesh, Rotation(frame * 13 + 40, 940 - divide(sine(frame * 9), 1024)), place)
    return screen


SCENES = {"cube": cube, "blending": blending, "fog": fog, "teapot": teapot}
CHECKSUMS = {}


def checksum(name, frame):
    """The checksum of one frame of a scene."""
    key = name, frame % FRAMES
    if key not in CHECKSUMS:
        CHECKSUMS[key] = SCENES[name](frame % FRAMES).checksum()
    return CHECKSUMS[key]


def film(names, frames):
    """The checksum of frames of scenes."""
    total = 0
    for frame in range(frames):
        for name in names:
            total = mix(total, checksum(name, frame))
    return total


METHODS = {name: (lambda frames, name=name: film([name], frames)) for name in SCENES}
METHODS["run"] = lambda frames: film(SCENES, frames)
