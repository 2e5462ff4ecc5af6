import { setting, unset } from '../setting.ts'
import { integer, keyPrefix, oneOf, orOff, postgresUrl, redisUrl, text } from '../values.ts'

/** Where calls, keys and sessions are kept, and for how long. */
export const stores = {
  dataDir: setting('RINGWIRE_DATA_DIR', text('directory'), './data', 'Directory of the database and of made secrets.'),
  databaseUrl: unset(
    'DATABASE_URL',
    postgresUrl(),
    null,
    'unset: SQLite in the data directory',
    'The PostgreSQL database that holds calls and keys; sslmode and sslrootcert are read from it. Several processes can use it with REDIS_URL.',
    { secret: true },
  ),
  redisUrl: unset(
    'REDIS_URL',
    redisUrl(),
    null,
    'unset: in process',
    'Redis with the sessions of all nodes that use the database; needs DATABASE_URL and RINGWIRE_JWT_SECRETS.',
    { secret: true },
  ),
  redisPrefix: unset(
    'RINGWIRE_REDIS_PREFIX',
    keyPrefix(),
    '',
    'unset: none',
    'Stands before each key in Redis, so that several deployments can share one database, or one cluster. The same on all nodes.',
  ),
  sqliteSynchronous: setting(
    'RINGWIRE_SQLITE_SYNCHRONOUS',
    oneOf('FULL', 'NORMAL'),
    'FULL',
    'FULL: acknowledged requests survive a power loss. NORMAL: they survive a crash of the process.',
  ),
  retentionDays: setting(
    'RINGWIRE_RETENTION_DAYS',
    orOff(integer(1, 36_500)),
    '90',
    'How many days calls are kept after their end; off keeps them for ever.',
  ),
}
