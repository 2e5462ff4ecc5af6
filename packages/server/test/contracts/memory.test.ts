import { createMemorySessions } from '../../src/adapters/memory/sessions.ts'
import { resetText, resumeWindowMs, type SessionsHarness, windowMs } from './session-parts.ts'
import { registerSessionsContract } from './sessions.ts'
import { registerLostLogRules } from './sessions-lost-logs.ts'

const open = async (windows: { windowMs: number; resumeWindowMs: number }): Promise<SessionsHarness> => {
  const lost: { sessionId: string; epoch: string }[] = []
  const sessions = createMemorySessions({
    ...windows,
    onLogLost({ sessionId, extended }, epoch) {
      if (!extended) return
      lost.push({ sessionId, epoch })
      sessions.reset(sessionId, epoch, resetText)
    },
  })
  return { sessions, lost, loseLogs: async () => sessions.loseLogs(), settled: async () => {}, close: async () => {} }
}

registerSessionsContract('memory', open)
// Logs are lost for everybody: each test has a store of its own.
registerLostLogRules('memory', () => open({ windowMs, resumeWindowMs }))
