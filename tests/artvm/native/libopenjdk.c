/* Which natives does the tests' boot class path have of its own? java.lang.Math as libm computes it, the bits of numbers,
 * and the clocks. libart finds them by their names; none of them uses its JNIEnv, so no jni.h is needed. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

typedef int8_t jboolean;
typedef int16_t jshort;
typedef int32_t jint;
typedef int64_t jlong;
typedef float jfloat;
typedef double jdouble;

/* On 32-bit ARM ART hands floating point to natives in core registers, whatever the rest of the system does. */
#if defined(__arm__)
#define JNICALL __attribute__((pcs("aapcs")))
#else
#define JNICALL
#endif

/* Overloads carry their argument types after `__`, as JNI mangles them. */
#define NATIVE(result, cls, name, ...)                                                                                 \
    JNICALL result Java_java_lang_##cls##_##name(void *env __attribute__((unused)), void *unused __attribute__((unused)), __VA_ARGS__)

int JNI_OnLoad(void *vm, void *reserved)
{
    (void)vm;
    (void)reserved;
    return 0x00010006; /* JNI_VERSION_1_6 */
}

#define MATH1(name)                                                                                                    \
    NATIVE(jdouble, Math, name, jdouble x) { return name(x); }
#define MATH2(java_name, c_name)                                                                                       \
    NATIVE(jdouble, Math, java_name, jdouble x, jdouble y) { return c_name(x, y); }

MATH1(cos) MATH1(sin) MATH1(acos) MATH1(asin) MATH1(atan) MATH1(cbrt) MATH1(cosh) MATH1(exp) MATH1(expm1)
MATH1(log) MATH1(log10) MATH1(log1p) MATH1(sinh) MATH1(tan) MATH1(tanh) MATH1(sqrt) MATH1(ceil) MATH1(floor) MATH1(rint)
MATH2(atan2, atan2) MATH2(hypot, hypot) MATH2(nextAfter, nextafter)

/* C says pow(1, NaN) = 1 and pow(-1, inf) = 1; java.lang.Math says NaN for both. */
NATIVE(jdouble, Math, pow, jdouble x, jdouble y)
{
    if (isnan(y) || (isinf(y) && fabs(x) == 1.0))
        return NAN;
    return pow(x, y);
}

NATIVE(jdouble, Math, abs__D, jdouble x) { return fabs(x); }
NATIVE(jfloat, Math, abs__F, jfloat x) { return fabsf(x); }
NATIVE(jlong, Math, abs__J, jlong x) { return x < 0 ? (jlong)(0 - (uint64_t)x) : x; }
NATIVE(jint, Math, abs__I, jint x) { return x < 0 ? (jint)(0 - (uint32_t)x) : x; }

/* A NaN wins, and -0.0 is below 0.0: fmin and fmax promise neither. */
#define MIN_MAX_FLOAT(type, suffix)                                                                                    \
    NATIVE(type, Math, min__##suffix##suffix, type x, type y)                                                          \
    {                                                                                                                  \
        if (isnan(x) || isnan(y))                                                                                      \
            return x + y;                                                                                              \
        if (x == y)                                                                                                    \
            return signbit(x) ? x : y;                                                                                 \
        return x < y ? x : y;                                                                                          \
    }                                                                                                                  \
    NATIVE(type, Math, max__##suffix##suffix, type x, type y)                                                          \
    {                                                                                                                  \
        if (isnan(x) || isnan(y))                                                                                      \
            return x + y;                                                                                              \
        if (x == y)                                                                                                    \
            return signbit(x) ? y : x;                                                                                 \
        return x > y ? x : y;                                                                                          \
    }
#define MIN_MAX_INTEGER(type, suffix)                                                                                  \
    NATIVE(type, Math, min__##suffix##suffix, type x, type y) { return x < y ? x : y; }                                \
    NATIVE(type, Math, max__##suffix##suffix, type x, type y) { return x > y ? x : y; }

MIN_MAX_FLOAT(jdouble, D)
MIN_MAX_FLOAT(jfloat, F)
MIN_MAX_INTEGER(jlong, J)
MIN_MAX_INTEGER(jint, I)

/* floor(x + 1/2), saturated, NaN to 0. x - floor(x) is exact, x + 0.5 is not. */
NATIVE(jlong, Math, round__D, jdouble x)
{
    double whole = floor(x);
    if (isnan(x))
        return 0;
    whole += x - whole >= 0.5 ? 1.0 : 0.0;
    if (whole >= 9223372036854775808.0)
        return INT64_MAX;
    return whole <= -9223372036854775808.0 ? INT64_MIN : (jlong)whole;
}

NATIVE(jint, Math, round__F, jfloat x)
{
    float whole = floorf(x);
    if (isnan(x))
        return 0;
    whole += x - whole >= 0.5f ? 1.0f : 0.0f;
    if (whole >= 2147483648.0f)
        return INT32_MAX;
    return whole <= -2147483648.0f ? INT32_MIN : (jint)whole;
}

NATIVE(jshort, Short, reverseBytes, jshort x) { return (jshort)__builtin_bswap16((uint16_t)x); }

#define BITS(cls, type, utype, suffix, size)                                                                           \
    NATIVE(type, cls, reverseBytes, type x) { return (type)__builtin_bswap##size((utype)x); }                          \
    NATIVE(type, cls, reverse, type x)                                                                                 \
    {                                                                                                                  \
        utype in = (utype)x, out = 0;                                                                                  \
        for (int i = 0; i < size; i++, in >>= 1)                                                                       \
            out = (utype)(out << 1) | (in & 1);                                                                        \
        return (type)out;                                                                                              \
    }                                                                                                                  \
    NATIVE(jint, cls, bitCount, type x) { return __builtin_popcount##suffix((utype)x); }                               \
    NATIVE(jint, cls, compare, type x, type y) { return (x > y) - (x < y); }                                           \
    NATIVE(type, cls, lowestOneBit, type x) { return (type)((utype)x & (0 - (utype)x)); }                              \
    NATIVE(type, cls, highestOneBit, type x)                                                                           \
    {                                                                                                                  \
        return x == 0 ? 0 : (type)((utype)1 << (size - 1 - __builtin_clz##suffix((utype)x)));                          \
    }                                                                                                                  \
    NATIVE(jint, cls, numberOfLeadingZeros, type x) { return x == 0 ? size : __builtin_clz##suffix((utype)x); }        \
    NATIVE(jint, cls, numberOfTrailingZeros, type x) { return x == 0 ? size : __builtin_ctz##suffix((utype)x); }       \
    NATIVE(type, cls, rotateLeft, type x, jint n)                                                                      \
    {                                                                                                                  \
        utype bits = (utype)x;                                                                                         \
        return (type)(bits << (n & (size - 1)) | bits >> (-n & (size - 1)));                                           \
    }                                                                                                                  \
    NATIVE(type, cls, rotateRight, type x, jint n)                                                                     \
    {                                                                                                                  \
        utype bits = (utype)x;                                                                                         \
        return (type)(bits >> (n & (size - 1)) | bits << (-n & (size - 1)));                                           \
    }                                                                                                                  \
    NATIVE(jint, cls, signum, type x) { return (x > 0) - (x < 0); }

BITS(Integer, jint, uint32_t, , 32)
BITS(Long, jlong, uint64_t, ll, 64)

#define FLOATING(cls, type, bits_type, to_bits, to_raw_bits, from_bits, nan_bits)                                      \
    NATIVE(bits_type, cls, to_raw_bits, type x)                                                                        \
    {                                                                                                                  \
        bits_type bits;                                                                                                \
        memcpy(&bits, &x, sizeof bits);                                                                                \
        return bits;                                                                                                   \
    }                                                                                                                  \
    NATIVE(bits_type, cls, to_bits, type x)                                                                            \
    {                                                                                                                  \
        bits_type bits;                                                                                                \
        memcpy(&bits, &x, sizeof bits);                                                                                \
        return isnan(x) ? nan_bits : bits;                                                                             \
    }                                                                                                                  \
    NATIVE(type, cls, from_bits, bits_type bits)                                                                       \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, &bits, sizeof x);                                                                                   \
        return x;                                                                                                      \
    }                                                                                                                  \
    NATIVE(jboolean, cls, isInfinite, type x) { return isinf(x) != 0; }                                                \
    NATIVE(jboolean, cls, isNaN, type x) { return isnan(x) != 0; }

FLOATING(Float, jfloat, jint, floatToIntBits, floatToRawIntBits, intBitsToFloat, 0x7fc00000)
FLOATING(Double, jdouble, jlong, doubleToLongBits, doubleToRawLongBits, longBitsToDouble, 0x7ff8000000000000LL)

static jlong nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (jlong)now.tv_sec * 1000000000 + now.tv_nsec;
}

jlong Java_java_lang_System_nanoTime(void *env, void *unused)
{
    (void)env;
    (void)unused;
    return nanoseconds(CLOCK_MONOTONIC);
}

jlong Java_java_lang_System_currentTimeMillis(void *env, void *unused)
{
    (void)env;
    (void)unused;
    return nanoseconds(CLOCK_REALTIME) / 1000000;
}
