# What does libdvm need to be built with varid's part? Included where its sources are listed; LOCAL_PATH is vm/.
# SPDX-License-Identifier: MIT OR Apache-2.0

varid_machine := $(firstword $(dvm_arch) $(TARGET_ARCH))
# Elsewhere varid_dalvik.h makes nothing of the hooks.
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
