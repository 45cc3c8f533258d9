// Four ways to sort: quick, heap, shell, insertion.
#include "../random.h"

enum { COUNT = 400 };

static int32_t values[COUNT];

static void swap(int32_t *a, int32_t *b)
{
    int32_t held = *a;
    *a = *b;
    *b = held;
}

static void quick(int32_t *first, int32_t *last)
{
    while (first < last) {
        int32_t pivot = first[(last - first) / 2];
        int32_t *low = first, *high = last;
        while (low <= high) {
            while (*low < pivot)
                low++;
            while (*high > pivot)
                high--;
            if (low <= high)
                swap(low++, high--);
        }
        quick(first, high);
        first = low;
    }
}

static void sift(int32_t *heap, int root, int size)
{
    for (;;) {
        int child = 2 * root + 1;
        if (child >= size)
            return;
        if (child + 1 < size && heap[child] < heap[child + 1])
            child++;
        if (heap[root] >= heap[child])
            return;
        swap(heap + root, heap + child);
        root = child;
    }
}

static void heap(int32_t *array, int size)
{
    for (int root = size / 2; root-- > 0;)
        sift(array, root, size);
    while (--size > 0) {
        swap(array, array + size);
        sift(array, 0, size);
    }
}

static void shell(int32_t *array, int size)
{
    for (int gap = size / 2; gap > 0; gap /= 2)
        for (int i = gap; i < size; i++) {
            int32_t value = array[i];
            int j = i;
            for (; j >= gap && array[j - gap] > value; j -= gap)
                array[j] = array[j - gap];
            array[j] = value;
        }
}

static void insertion(int32_t *array, int size)
{
    for (int i = 1; i < size; i++) {
        int32_t value = array[i];
        int j = i;
        for (; j > 0 && array[j - 1] > value; j--)
            array[j] = array[j - 1];
        array[j] = value;
    }
}

int main(void)
{
    uint32_t sum = 0;
    for (int way = 0; way < 4; way++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = (int32_t)random_word() >> 8;
        switch (way) {
        case 0: quick(values, values + COUNT - 1); break;
        case 1: heap(values, COUNT); break;
        case 2: shell(values, COUNT); break;
        default: insertion(values, COUNT / 4); break;
        }
        for (int i = 1; i < COUNT; i++)
            sum = sum * 17 + (uint32_t)values[i] + (values[i - 1] <= values[i]);
    }
    return (int)sum;
}
