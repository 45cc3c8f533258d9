// What do dex2oat's files include beside what is common?
#include "common.h"

#include "cmdline_parser.h"
#include "compiled_method-inl.h"
#include "debug/method_debug_info.h"
#include "dex/dex_file_loader.h"
#include "dex/verification_results.h"
#include "dexlayout.h"
#include "driver/compiler_driver-inl.h"
#include "elf/elf_builder.h"
#include "linker/image_writer.h"
#include "linker/oat_writer.h"
