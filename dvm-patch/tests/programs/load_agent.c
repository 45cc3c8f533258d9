/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads the agent in a process that is not an ART of a known build. load_agent AGENT [LIBRARY]:
 * prints what Agent_OnLoad returns and the number of tunnels.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int on_load(void *vm, char *options, void *reserved);

int main(int argc, char **argv)
{
	void *agent, *other = argc > 2 ? dlopen(argv[2], RTLD_NOW) : argv;
	char line[512];
	int result, tunnels = 0;
	FILE *maps;

	agent = dlopen(argv[1], RTLD_NOW);
	if (!agent || !other) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	result = ((on_load *)dlsym(agent, "Agent_OnLoad"))(NULL, NULL, NULL);
	maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		tunnels += strstr(line, "varid-tunnel") != NULL;
	printf("%d %d\n", result, tunnels);
	return 0;
}
