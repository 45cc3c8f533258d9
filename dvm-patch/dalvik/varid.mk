# Build settings of libdvm for varid's hooks. Included where its sources are listed; LOCAL_PATH is vm/.
# SPDX-License-Identifier: MIT OR Apache-2.0

varid_machine := $(firstword $(dvm_arch) $(TARGET_ARCH))
# On other machines varid_dalvik.h defines the hooks as empty.
ifneq ($(filter arm x86,$(varid_machine)),)
  LOCAL_CFLAGS += -DDIM_NO_SHADOW
  LOCAL_SRC_FILES += \
	varid/$(notdir $(wildcard $(LOCAL_PATH)/varid/varid_dalvik.c*)) \
	varid/base.c \
	varid/calls.c \
	varid/control.c \
	varid/dim.c \
	varid/files.c \
	varid/log.c
endif
