import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Answer, Decider } from '@ringwire/testkit/decider'
import { until } from '@ringwire/testkit/patience'
import { createAddressGuard } from '../outgoing/addresses.ts'
import { createPost } from '../outgoing/post.ts'
import { newWebhookSecret } from '../outgoing/signature.ts'
import { createSystemTimers } from '../time/timers.ts'
import { type Asked, createInviteHook, type Question } from './invite-hook.ts'

let decider: Decider
beforeAll(async () => {
  decider = await Decider.open()
})
afterAll(() => decider?.close())

const never = AbortSignal.any([])
const timers = createSystemTimers()

/** So long that nobody is late. */
function open(decisionMs = 20_000) {
  const asked: Asked[] = []
  const post = createPost({ guard: createAddressGuard(['127.0.0.1']), shownBytes: 16_384 })
  const onAsked = (one: Asked) => void asked.push(one)
  return { asked, hook: createInviteHook({ post, now: Date.now, onAsked, timers, decisionMs }) }
}

function question(calleeId: string, more: Partial<Question> = {}): Question {
  const product = more.product ?? 'shop'
  return {
    ...{
      product,
      callUuid: crypto.randomUUID(),
      callType: 'audio',
      contextType: 'order',
      contextId: '7',
      metadata: null,
    },
    decider: { url: decider.url, secret: newWebhookSecret(), failure: 'refuse' },
    caller: { product, role: 'customer', userId: `caller-of-${calleeId}`, displayName: 'Ann' },
    callee: { product, role: 'agent', userId: calleeId },
    wrongWith: ({ role }) => (role === 'agent' ? undefined : 'the caller may not call whom the answer names'),
    ...more,
  }
}

test('[HOOK5] the same question joins the one that is open; another call is another question', async () => {
  const { hook, asked } = open()
  const { promise, resolve } = Promise.withResolvers<Answer>()
  decider.about('joined', () => promise)
  const one = question('joined')
  const verdicts = [
    hook.ask(one, never),
    hook.ask(one, never),
    hook.ask({ ...one, callUuid: crypto.randomUUID() }, never),
  ]
  await decider.asked('joined', 2)
  resolve({ decision: 'refuse', reason: 'late' })
  expect(await Promise.all(verdicts)).toEqual(Array(3).fill({ decision: 'refuse', reason: 'late' }))
  expect([decider.of('joined').length, asked.map(({ result }) => result)]).toEqual([2, ['refuse', 'refuse']])
  // It is over: a new question gets a new answer.
  decider.about('joined', () => ({ decision: 'allow' }))
  expect(await hook.ask(one, never)).toEqual({ decision: 'allow' })
})

test('[HOOK5] who hangs up withdraws it for all who wait, and the request is given up', async () => {
  const { hook, asked } = open()
  decider.about('withdrawn', () => 'hang')
  const abort = new AbortController()
  const one = question('withdrawn')
  const verdicts = [hook.ask(one, never), hook.ask(one, abort.signal)]
  await decider.asked('withdrawn')
  abort.abort()
  expect(await Promise.all(verdicts)).toEqual(Array(2).fill({ decision: 'withdrawn' }))
  expect(asked.map(({ result }) => result)).toEqual(['withdrawn'])
})

test('[HOOK5] 50 questions of a product are open, others wait for their turn in the same time, and other products do not', async () => {
  const { hook, asked } = open()
  let here = 0
  let most = 0
  const { promise: opened, resolve: openUp } = Promise.withResolvers<void>()
  const answer = async () => {
    most = Math.max(most, ++here)
    await opened
    here--
    return { decision: 'allow' }
  }
  const ids = Array.from({ length: 60 }, (_, n) => `busy-${n}`)
  for (const id of ids) decider.about(id, answer)
  const all = ids.map((id) => hook.ask(question(id), never))
  await until('50 are asked', () => here === 50)
  decider.about('elsewhere', () => ({ decision: 'allow' }))
  expect(await hook.ask(question('elsewhere', { product: 'clinic' }), never)).toEqual({ decision: 'allow' })
  openUp()
  expect(await Promise.all(all)).toEqual(Array(60).fill({ decision: 'allow' }))
  expect([most, asked.length]).toEqual([50, 61])
})

test('[HOOK5] whose turn does not come in time is answered as the product says, and says why', async () => {
  const { hook, asked } = open(300)
  decider.about('hangs', () => 'hang')
  const caller = question('hangs').caller
  const decided = { url: decider.url, secret: newWebhookSecret() }
  const ask = (failure: 'allow' | 'refuse') =>
    hook.ask(question('hangs', { caller, decider: { ...decided, failure } }), never)
  const verdicts = await Promise.all([ask('allow'), ask('refuse'), ask('refuse'), ask('allow')])
  const [allowed, refused] = [{ decision: 'allow' }, { decision: 'refuse', reason: 'unavailable' }]
  expect(verdicts).toEqual([allowed, refused, refused, allowed] as never)
  expect(asked.map(({ result }) => result)).toEqual(Array(4).fill('failed'))
  // Whose turn came at the very end may still have asked.
  for (const { problem } of asked) expect(['timeout', 'too many questions were open']).toContain(problem ?? '')
})

test('[HOOK5] an answer that redirects to whom the caller may not call is not valid, and says why', async () => {
  const { hook, asked } = open()
  const [eve, mallory] = ['agent', 'doctor'].map((role) => ({ role, user_id: 'somebody' }))
  decider.about('moved', () => ({ decision: 'redirect', callee: eve }))
  expect(await hook.ask(question('moved'), never)).toEqual({
    decision: 'redirect',
    callee: { role: 'agent', userId: 'somebody' },
  })
  decider.about('moved', () => ({ decision: 'redirect', callee: mallory }))
  expect(await hook.ask(question('moved'), never)).toEqual({ decision: 'refuse', reason: 'unavailable' })
  expect(asked.map(({ result, problem }) => [result, problem])).toEqual([
    ['redirect', undefined],
    ['failed', 'the caller may not call whom the answer names'],
  ])
})

test('[HOOK4] [HOOK5] a backend at an address that is not allowed is not asked', async () => {
  const asked: Asked[] = []
  const post = createPost({ guard: createAddressGuard([]) })
  const hook = createInviteHook({ post, now: Date.now, timers, onAsked: (one) => void asked.push(one) })
  expect(await hook.ask(question('private'), never)).toEqual({ decision: 'refuse', reason: 'unavailable' })
  expect([asked.map(({ result }) => result), decider.of('private')]).toEqual([['failed'], []])
})
