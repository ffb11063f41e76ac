/* Stands in for Contiki-NG. */
unsigned short random_rand(void);
