import { afterAll, afterEach, beforeAll, beforeEach } from 'bun:test'
import { type Box, createBox, type Ended } from '../cli/command.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'

/** A data directory and a database that calls move to: new ones for each test. */
export interface Move {
  readonly server: Databases
  readonly box: Box
  readonly url: string
  /** From now on they move to another database. */
  toAnother(): Promise<void>
  migrate(args?: string): Promise<Ended>
  /** How many calls are in the database. */
  countCalls(): Promise<number>
}

/** For the tests of a file, on a server only for this file. */
export function moveFor(): Move {
  let server: Databases
  let box: Box
  let url: string
  const toAnother = async () => {
    url = await server.database()
  }
  beforeAll(async () => {
    server = await openDatabases()
  })
  beforeEach(async () => {
    box = createBox()
    await toAnother()
  })
  afterEach(() => box.clean())
  afterAll(() => server.dispose())
  return {
    get server() {
      return server
    },
    get box() {
      return box
    },
    get url() {
      return url
    },
    toAnother,
    migrate: (args = '') => box.run(`migrate ${args}`, { env: { DATABASE_URL: url } }),
    countCalls: async () => (await server.query('SELECT count(*)::int AS n FROM calls', url))[0].n,
  }
}
