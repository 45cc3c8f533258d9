// Linked lists and a search tree over nodes of an array: merge sort, insertion, walks.
#include "../random.h"

enum { COUNT = 600 };

static struct node {
    struct node *next, *left, *right;
    uint32_t key;
} nodes[COUNT];

static struct node *merge(struct node *a, struct node *b)
{
    struct node *head = 0, **tail = &head;
    while (a && b) {
        struct node **smaller = a->key <= b->key ? &a : &b;
        *tail = *smaller;
        tail = &(*tail)->next;
        *smaller = (*smaller)->next;
    }
    *tail = a ? a : b;
    return head;
}

static struct node *sort(struct node *list)
{
    if (!list || !list->next)
        return list;
    struct node *slow = list, *fast = list->next;
    while (fast && fast->next) {
        slow = slow->next;
        fast = fast->next->next;
    }
    struct node *second = slow->next;
    slow->next = 0;
    return merge(sort(list), sort(second));
}

static uint32_t walk(const struct node *tree, uint32_t depth)
{
    if (!tree)
        return 0;
    return walk(tree->left, depth + 1) * 3 + tree->key + depth + walk(tree->right, depth + 1);
}

int main(void)
{
    struct node *root = 0, *list = 0;
    for (int i = 0; i < COUNT; i++) {
        struct node *node = &nodes[i];
        node->key = random_word() >> 12;
        node->next = list;
        list = node;
        struct node **place = &root;
        while (*place)
            place = node->key < (*place)->key ? &(*place)->left : &(*place)->right;
        *place = node;
    }
    uint32_t sum = walk(root, 0);
    for (const struct node *node = sort(list); node; node = node->next)
        sum = sum * 31 + node->key;
    return (int)sum;
}
