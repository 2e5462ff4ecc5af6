import { createMemorySessions } from '../../src/adapters/memory/sessions.ts'
import { registerSessionsContract } from './sessions.ts'

registerSessionsContract('memory', async (windows) => ({
  sessions: createMemorySessions(windows),
  // There is nothing that can be emptied.
  emptyStore: async () => {},
  settled: async () => {},
  close: async () => {},
}))
