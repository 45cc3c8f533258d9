"""What must org.example.cradle return? The same physics and the same coverage of pixels, in Python's integers."""

import operator
from math import isqrt

from .arithmetic import divide, int32, mix

WIDTH, HEIGHT = 320, 240
ONE, LENGTH, RADIUS, TOP, GRAVITY = 65536, 150, 14, 40, 11
# What the pixels of a row are multiplied with in a checksum whose every step is total * 31 + pixel, in 32 bits.
POWERS = [31 ** (WIDTH - 1 - column) & 0xFFFFFFFF for column in range(WIDTH)]


def mul(a, b):
    return int32(a * b >> 16)


def sine(angle):
    square = mul(angle, angle)
    cube = mul(square, angle)
    return angle - mul(cube, 10923) + mul(mul(cube, square), 546)


def cosine(angle):
    square = mul(angle, angle)
    return ONE - divide(square, 2) + mul(mul(square, square), 2731)


def between(low, high, limit):
    """The pixels that a stretch touches."""
    return range(min(max((low >> 8) - 1, 0), limit), min(max((high >> 8) + 2, 0), limit))


def blend(a, b, weight):
    """Two colours, channel by channel: between red and blue is room for either's product."""
    red_blue = (a & 0xFF00FF) * (256 - weight) + (b & 0xFF00FF) * weight
    green = (a & 0x00FF00) * (256 - weight) + (b & 0x00FF00) * weight
    return red_blue >> 8 & 0xFF00FF | green >> 8 & 0x00FF00


class Canvas:
    """The framebuffer."""

    def __init__(self):
        self.pixels = []

    def cover(self, x, y, color, coverage):
        if coverage > 0:
            self.pixels[y][x] = blend(self.pixels[y][x], color, min(coverage, 256))

    def clear(self, top, bottom):
        self.pixels = [[blend(top, bottom, y * 256 // HEIGHT)] * WIDTH for y in range(HEIGHT)]

    def circle(self, x, y, radius, color):
        light_x, light_y = x - radius // 3, y - radius // 3
        for row in between(y - radius, y + radius, HEIGHT):
            for column in between(x - radius, x + radius, WIDTH):
                at_x, at_y = column * 256 + 128, row * 256 + 128
                coverage = radius + 128 - isqrt((at_x - x) ** 2 + (at_y - y) ** 2)
                if coverage > 0:
                    shade = isqrt((at_x - light_x) ** 2 + (at_y - light_y) ** 2) * 128 // radius
                    self.cover(column, row, blend(color, 0, min(shade, 224)), coverage)

    def line(self, x0, y0, x1, y1, width, color):
        dx, dy, half = x1 - x0, y1 - y0, width // 2
        square = dx * dx + dy * dy
        length = isqrt(square)
        columns = between(min(x0, x1) - half, max(x0, x1) + half, WIDTH)
        # No pixel of a row is covered that is farther to the left or right of the line than this.
        reach = (half + 128) * length // abs(dy) + 256 if dy else None
        for row in between(min(y0, y1) - half, max(y0, y1) + half, HEIGHT):
            at_y = row * 256 + 128 - y0
            near = columns
            if reach:
                middle = x0 + at_y * dx // dy
                near = range(max(columns.start, (middle - reach) // 256), min(columns.stop, (middle + reach) // 256 + 1))
            for column in near:
                at_x = column * 256 + 128 - x0
                if 0 <= at_x * dx + at_y * dy <= square:
                    self.cover(column, row, color, half + 128 - abs(at_x * dy - at_y * dx) // length)

    def checksum(self):
        total = 0
        for row in self.pixels:
            total = total * POWERS[0] * 31 + sum(map(operator.mul, row, POWERS)) & 0xFFFFFFFF
        return int32(total)


class Ball:
    """A pendulum."""

    def __init__(self, number):
        self.pivot = WIDTH // 2 + (number - 2) * 2 * RADIUS
        self.color = 0xB0B8C8 - number * 0x101810
        self.angle, self.velocity = (-45000 if number < 2 else 0), 0

    def swing(self):
        self.velocity -= mul(GRAVITY, sine(self.angle))
        self.angle += self.velocity

    def place(self):
        x = self.pivot * 256 + mul(LENGTH * 256, sine(self.angle))
        return x, (TOP + LENGTH) * 256 - mul(LENGTH * 256, ONE - cosine(self.angle))


def step(balls):
    """One step of the physics."""
    for ball in balls:
        ball.swing()
    for last in range(len(balls) - 1, 0, -1):
        for left, right in zip(balls[:last], balls[1 : last + 1]):
            if left.angle >= right.angle and left.velocity > right.velocity:
                left.velocity, right.velocity = right.velocity, left.velocity


def draw(canvas, balls):
    """One frame."""
    canvas.clear(0x203050, 0x8090A0)
    canvas.line(60 * 256, TOP * 256, 260 * 256, TOP * 256, 1536, 0x604020)
    canvas.line(66 * 256, (TOP - 10) * 256, 266 * 256, (TOP - 10) * 256, 1280, 0x503018)
    for ball in balls:
        x, y = ball.place()
        canvas.circle(x + 5 * 256, y + 7 * 256, RADIUS * 256, 0x303038)
    for ball in balls:
        canvas.line(ball.pivot * 256, TOP * 256, *ball.place(), 384, 0xD0D0D0)
        canvas.line((ball.pivot + 6) * 256, (TOP - 10) * 256, *ball.place(), 256, 0x909090)
    for ball in balls:
        canvas.circle(*ball.place(), RADIUS * 256, ball.color)


class Film:
    """The frames of one film."""

    def __init__(self):
        self.balls, self.canvas, self.checksums = [Ball(number) for number in range(5)], Canvas(), []

    def checksum(self, frame):
        """The checksum of one frame."""
        while len(self.checksums) <= frame:
            for _ in range(48):
                step(self.balls)
            draw(self.canvas, self.balls)
            self.checksums.append(self.canvas.checksum())
        return self.checksums[frame]


FILM = Film()


def run(frames):
    total = 0
    for frame in range(frames):
        total = mix(total, FILM.checksum(frame % 300))
    return total


METHODS = {"run": run}
