/*
 * A loadable extension that counts what SQLite does on one thread of this process: sqlite-work.ts builds and reads it.
 * It needs no headers. The numbers are places in sqlite3_api_routines (sqlite3ext.h), which never change.
 */
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef int (*trace)(unsigned, void *, void *, void *);

enum { sql = 153, stmt_status = 170, stmt_readonly = 185, auto_extension = 192, trace_v2 = 214 };
enum { loaded_for_good = 256, vm_step = 4, trace_profile = 2, trace_row = 4 };

extern unsigned long pthread_self(void);

static void **api;
static unsigned long watched;
static long long steps, rows, writes, most;
static char dearest[4096];

static void keep(const char *text) {
  unsigned i = 0;
  for (; text && text[i] && i < sizeof(dearest) - 1; i++) dearest[i] = text[i];
  dearest[i] = 0;
}

/* Rows are those that a statement answered. Steps are those of its program, also of the rows that it passed over. */
static int note(unsigned what, void *context, void *statement, void *detail) {
  if (pthread_self() != watched) return 0;
  if (what == trace_row) {
    rows++;
    return 0;
  }
  long long count = ((int (*)(void *, int, int))api[stmt_status])(statement, vm_step, 1);
  steps += count;
  if (!((int (*)(void *))api[stmt_readonly])(statement)) writes++;
  if (count > most) {
    most = count;
    keep(((const char *(*)(void *))api[sql])(statement));
  }
  return 0;
}

static int attach(sqlite3 *db, char **error, void **routines) {
  return ((int (*)(sqlite3 *, unsigned, trace, void *))api[trace_v2])(db, trace_profile | trace_row, note, 0);
}

int sqlite3_extension_init(sqlite3 *db, char **error, void **routines) {
  api = routines;
  ((int (*)(void *))api[auto_extension])((void *)attach);
  return loaded_for_good;
}

void watch_this_thread(void) { watched = pthread_self(); }
void forget(void) { steps = rows = writes = most = dearest[0] = 0; }
double steps_so_far(void) { return steps; }
double rows_so_far(void) { return rows; }
double writes_so_far(void) { return writes; }
const char *dearest_so_far(void) { return dearest; }
