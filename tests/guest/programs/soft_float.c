// Floating point in software: an integral, square roots by Newton, sines by their series.
#include <stdint.h>

static double root(double value)
{
    double guess = value;
    for (int i = 0; i < 6; i++)
        guess = 0.5 * (guess + value / guess);
    return guess;
}

static float sine(float angle)
{
    float term = angle, sum = angle;
    for (int i = 1; i < 7; i++) {
        term *= -angle * angle / (float)(2 * i * (2 * i + 1));
        sum += term;
    }
    return sum;
}

int main(void)
{
    double integral = 0;
    for (int i = 0; i < 25; i++)
        integral += root(1.0 + i * 0.125) * 0.125;
    float waves = 0;
    for (int i = 0; i < 25; i++)
        waves += sine((float)i * 0.05f) * 1000.0f;
    return (int)(integral * 1000.0) * 31 + (int)waves + (integral > 100.0) + (waves < 0.5f);
}
