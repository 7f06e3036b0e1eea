/*
 * keep.h - what stays of an attempt when its folder goes.
 */
#pragma once

/* Moves its event files to JOB_FOLDER/events/ATTEMPT/, where TensorBoard may be pointed at;
 * nothing when that folder is not on this machine. */
void keep_events(const char *attempt_folder, const char *job_folder);
