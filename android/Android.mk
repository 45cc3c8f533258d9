# varid in a system image (Android 1.6 to 6; make): PRODUCT_PACKAGES += varid. Later ones take Android.bp instead.
# Beside this file, in bin/ARCH, lies the static varid for each ABI, from a distribution or made by scripts/cross.sh.

ifeq ($(wildcard build/soong/Android.bp),)

LOCAL_PATH := $(call my-dir)

include $(CLEAR_VARS)
LOCAL_MODULE := varid
LOCAL_MODULE_TAGS := optional
LOCAL_MODULE_CLASS := EXECUTABLES
ifeq ($(TARGET_ARCH),arm64)
LOCAL_SRC_FILES := bin/arm64/varid
else ifeq ($(TARGET_ARCH),x86_64)
LOCAL_SRC_FILES := bin/x86_64/varid
else
LOCAL_SRC_FILES := bin/armhf/varid
endif
LOCAL_STRIP_MODULE := false
include $(BUILD_PREBUILT)

# Nothing before Android 7 reads /system/etc/init: the board's init.rc has "import /varid.rc".
include $(CLEAR_VARS)
LOCAL_MODULE := varid.rc
LOCAL_MODULE_TAGS := optional
LOCAL_MODULE_CLASS := ETC
LOCAL_MODULE_PATH := $(TARGET_ROOT_OUT)
LOCAL_SRC_FILES := varid.rc
include $(BUILD_PREBUILT)

endif
