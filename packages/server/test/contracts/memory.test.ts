import { createMemorySessions } from '../../src/stores/memory/sessions.ts'
import { registerSessionsContract } from './sessions.ts'

registerSessionsContract('memory', async (windows) => ({
  sessions: createMemorySessions(windows),
  // There is nothing that can be emptied.
  emptyStore: async () => {},
  settled: async () => {},
  close: async () => {},
}))
