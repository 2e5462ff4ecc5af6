import { createMemorySessions } from '../../src/adapters/memory/sessions.ts'
import { resetText, type SessionsHarness } from './session-parts.ts'
import { registerSessionsContract } from './sessions.ts'

registerSessionsContract('memory', async (windows): Promise<SessionsHarness> => {
  const lost: { sessionId: string; epoch: string }[] = []
  const sessions = createMemorySessions({
    ...windows,
    onLogLost({ sessionId }, epoch) {
      lost.push({ sessionId, epoch })
      sessions.reset(sessionId, epoch, resetText)
    },
  })
  return { sessions, lost, loseLogs: async () => sessions.loseLogs(), settled: async () => {}, close: async () => {} }
})
