/** The exit code for a command line or a configuration that cannot be used: what serves and what reads the options both end with it. */

export const usageExitCode = 2;
