/* What does the test's agent do? It says that the VM loaded it, and with which options. */
#include <stdio.h>

int Agent_OnLoad(void *vm, char *options, void *reserved)
{
    (void)reserved;
    printf("agent vm=%d options=%s\n", vm != NULL, options);
    fflush(stdout);
    return 0;
}
