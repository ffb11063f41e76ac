/* What a debug build may do with a mistake of the caller: here it is counted. See calm.c. */
extern unsigned long misuses;
extern long last_misuse;
#define CALM_MISUSE(error) (misuses++, last_misuse = (error))
