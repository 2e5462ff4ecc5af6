import { expect, test } from 'bun:test'
import { isCameraOn } from './camera.ts'
import { inCall, machine, standInCall, standInClient, track, until } from './line.fixture.ts'
import { createLine } from './line.ts'

test('two providers of one client: a call that comes rings once, and one of them may go', () => {
  const { client, rings } = standInClient()
  const line = createLine(client)
  const ends = [line.attach(), line.attach()]
  const first = rings()
  expect([first.asked, line.get().phase]).toEqual([['alerting'], 'incoming'])
  const second = rings()
  expect(second.asked).toEqual(['reject busy'])
  ends[0]?.()
  expect(rings().asked).toEqual(['reject busy'])
  ends[1]?.()
  expect(rings().asked).toEqual([])
})

test('a camera is on while it is opened or sent: a press cancels the prompt, and one that fails is off', async () => {
  const { line, attempts, attempt, slots, media, opened } = await inCall('audio')
  const added = line.toggleCamera()
  expect([slots().video.name, isCameraOn(media.state)]).toEqual(['opening', true])
  await line.toggleCamera()
  const prompt = await attempt(2)
  prompt.opens()
  await added
  expect([slots().video.name, isCameraOn(media.state), opened.at(-1)?.readyState]).toEqual(['empty', false, 'ended'])
  expect(attempts.length).toBe(2)
  const again = line.toggleCamera()
  ;(await attempt(3)).opens()
  await again
  expect(isCameraOn(media.state)).toBe(true)

  await line.toggleCamera()
  const taken = line.toggleCamera().catch(({ code }) => code)
  ;(await attempt(4)).fails('NotReadableError')
  expect([await taken, media.state.muted.video, slots().video]).toEqual([
    ...['IN_USE', false],
    { name: 'lost', code: 'IN_USE' },
  ])
  expect(isCameraOn(media.state)).toBe(false)
  // The next press tries again.
  const back = line.toggleCamera()
  ;(await attempt(5)).opens()
  await back
  expect(isCameraOn(media.state)).toBe(true)
})

test('a camera that is unplugged in a call is off', async () => {
  const { line, attempt, media, opened, slots } = await inCall('video')
  expect(isCameraOn(media.state)).toBe(true)
  opened.find(({ kind }) => kind === 'video')?.dispatchEvent(new Event('ended'))
  ;(await attempt(2)).fails('NotFoundError')
  await until(() => slots().video.name === 'lost')
  expect(isCameraOn(media.state)).toBe(false)
  line.hangUp()
})

test('a second press while the browser asks for the screen asks nothing more', async () => {
  const { line, screens, slots } = await inCall('audio')
  const first = line.toggleScreen()
  await line.toggleScreen()
  expect(screens.length).toBe(1)
  screens[0]?.resolve({ getTracks: () => [], getVideoTracks: () => [track('video', {})] } as never)
  await first
  expect(slots().screen.name).toBe('live')
})

test('a device is remembered when it is open, and the one that was chosen last', async () => {
  const { line, attempt } = await inCall('video')
  line.chooseDevice('videoinput', 'broken')
  ;(await attempt(2)).fails('NotAllowedError')
  await until(() => line.get().media?.state.slots.video.name === 'live')
  expect(line.get().devices).toEqual({})
  line.chooseDevice('videoinput', 'slow')
  line.chooseDevice('videoinput', 'quick')
  ;(await attempt(4)).opens()
  await until(() => line.get().devices.videoinput !== undefined)
  ;(await attempt(3)).opens()
  await Promise.resolve()
  expect(line.get().devices).toEqual({ videoinput: 'quick' })
})

test('a chosen device that another program has is replaced by another one', async () => {
  const there = machine()
  const { client } = standInClient('audio')
  const line = createLine(client)
  line.configure({ media: { environment: there.environment, storage: null } })
  line.chooseDevice('audioinput', 'taken')
  line.place({ userId: 'ben', role: 'agent' })
  const first = await there.attempt(1)
  expect(first.wish).toEqual({ audio: { deviceId: { exact: 'taken' } } })
  first.fails('NotReadableError')
  const second = await there.attempt(2)
  expect(second.wish).toEqual({ audio: true })
  second.opens()
  await until(() => line.get().media?.state.slots.audio.name === 'live')
})

test('flip asks for the other side and keeps the size; a track that was made of the camera tells no side', async () => {
  const video = { width: { ideal: 320 } }
  const process = (source: MediaStreamTrack) => track(source.kind, { deviceId: 'canvas' })
  const { line, attempt } = await inCall('video', {
    cameras: ['front', 'back'],
    media: { audio: true, video },
    process,
  })
  for (const [nth, side] of [
    [2, 'environment'],
    [3, 'user'],
    [4, 'environment'],
  ] as const) {
    const flipped = line.flipCamera()
    const { wish, opens } = await attempt(nth)
    expect(wish).toEqual({ video: { ...video, facingMode: { exact: side } } })
    opens({ facingMode: side })
    await flipped
  }
  expect(line.get().devices).toEqual({})
})

test('where no camera tells its side, flip takes the next one, with and without a track of the application', async () => {
  for (const process of [undefined, (source: MediaStreamTrack) => track(source.kind, { deviceId: 'canvas' })]) {
    const { line, attempt } = await inCall('video', { cameras: ['one', 'two'], ...(process && { process }) })
    for (const [nth, id] of [
      [2, 'two'],
      [4, 'one'],
    ] as const) {
      const flipped = line.flipCamera()
      ;(await attempt(nth)).fails('OverconstrainedError')
      const { wish, opens } = await attempt(nth + 1)
      expect(wish.video).toMatchObject({ deviceId: { exact: id }, width: { ideal: 1280 } })
      opens({ deviceId: id })
      await flipped
      expect(line.get().devices.videoinput).toBe(id)
    }
  }
})

test('a refused accept closes what it opened, and the next one goes out with whatever options', async () => {
  const there = machine()
  const { client, rings } = standInClient()
  const line = createLine(client)
  line.attach()
  const { asked, become } = rings()
  line.configure({ media: { environment: there.environment, storage: null } })
  line.accept()
  become({ answering: true })
  ;(await there.attempt(1)).opens()
  await until(() => there.opened.length === 2 && line.get().media?.state.slots.video.name === 'live')
  become({ answering: false })
  expect(line.get().phase).toBe('incoming')
  expect(there.opened.map(({ readyState }) => readyState)).toEqual(['ended', 'ended'])
  line.configure({ media: { environment: there.environment, storage: null } })
  line.accept()
  expect(asked).toEqual(['alerting', 'accept', 'accept'])
})

test('the last answer decides about the camera, also after one without it was refused', async () => {
  const there = machine()
  const { client, rings } = standInClient()
  const line = createLine(client)
  line.attach()
  const { become } = rings()
  const kept = new Map<string, string>()
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
  line.configure({ media: { environment: there.environment, storage } })
  line.accept({ video: false })
  become({ answering: true })
  expect(Object.keys((await there.attempt(1)).wish)).toEqual(['audio'])
  become({ answering: false })
  line.accept()
  become({ answering: true })
  expect(Object.keys((await there.attempt(2)).wish)).toEqual(['audio', 'video'])
})

/** A call that goes on, and a second one that rings. */
async function secondRings() {
  const there = machine()
  const { client, rings } = standInClient('audio')
  const line = createLine(client)
  line.configure({ busy: 'wait', media: { environment: there.environment, storage: null } })
  line.attach()
  const first = rings('audio')
  line.accept()
  ;(await there.attempt(1)).opens()
  first.become({ name: 'connected' })
  await until(() => line.get().media?.state.slots.audio.name === 'live')
  const second = rings('audio')
  const shown = () => [line.get().call, line.get().other?.call]
  first.asked.splice(0)
  return { ...there, line, rings, first, second, shown }
}

test('[WAIT1] a second call waits, a third one is busy; declined, the first goes on as if nothing had been', async () => {
  const { line, rings, first, second, shown } = await secondRings()
  expect([shown(), second.asked, line.get().phase]).toEqual([[first.call, second.call], ['alerting'], 'connecting'])
  expect(rings().asked).toEqual(['reject busy'])
  line.swap()
  line.declineOther()
  expect([first.asked, second.asked]).toEqual([[], ['alerting', 'reject']])
  second.become({ name: 'over', status: 'rejected', reason: 'declined', by: null })
  expect([shown(), line.get().ended]).toEqual([[first.call, undefined], undefined])
})

test('[WAIT1] hold and answer, swap, and the call on hold goes on when the other one is over', async () => {
  const { line, first, second, shown, attempt } = await secondRings()
  const media = line.get().media
  line.holdAndAnswer()
  second.become({ answering: true })
  ;(await attempt(2)).opens()
  second.become({ name: 'connected' })
  expect([shown(), first.asked, second.asked]).toEqual([[second.call, first.call], ['hold'], ['alerting', 'accept']])
  expect([line.get().other?.media === media, line.get().media !== media]).toEqual([true, true])
  line.swap()
  expect([shown(), first.asked, second.asked]).toEqual([
    [first.call, second.call],
    ['hold', 'resume'],
    ['alerting', 'accept', 'hold'],
  ])
  expect(line.get().media).toBe(media)
  first.become({ name: 'over', status: 'ended', reason: 'hangup', by: null })
  expect([shown(), second.asked.at(-1), line.get().ended]).toEqual([[second.call, undefined], 'resume', undefined])
  second.become({ name: 'over', status: 'ended', reason: 'hangup', by: null })
  expect([line.get().phase, line.get().ended?.call]).toEqual(['over', second.call])
})

test('[WAIT1] a second call that cannot be answered gives the place back to the first one, which goes on', async () => {
  for (const [end, isOver] of [
    [{ name: 'over', status: 'missed', reason: 'no_answer', by: null }, true],
    [{ answering: false }, false],
  ] as const) {
    const { line, first, second, shown } = await secondRings()
    line.holdAndAnswer()
    second.become({ answering: true })
    second.become(end)
    expect([shown(), first.asked.at(-1)]).toEqual([[first.call, isOver ? undefined : second.call], 'resume'])
    expect([line.get().phase, line.get().other?.media]).toEqual(['connecting', undefined])
  }
})

test('[WAIT1] end and answer, also of a call that still rings at the other side, which cannot be put on hold', async () => {
  const there = machine()
  const { client, outgoing, rings } = standInClient('audio')
  const line = createLine(client)
  line.configure({ busy: 'wait', media: { environment: there.environment, storage: null } })
  line.attach()
  line.place({ userId: 'ben', role: 'agent' })
  const second = rings('audio')
  line.holdAndAnswer()
  expect([outgoing.asked, second.asked, line.get().call]).toEqual([[], ['alerting'], outgoing.call])
  line.endAndAnswer()
  outgoing.become({ name: 'over', status: 'cancelled', reason: 'caller_cancelled', by: null })
  expect([outgoing.asked, second.asked]).toEqual([['end'], ['alerting', 'accept']])
  expect([line.get().call, line.get().other, line.get().ended]).toEqual([second.call, undefined, undefined])
})

test('[WAIT1] a second call that still rings when the first one is over is the one that rings', async () => {
  const { line, first, second } = await secondRings()
  first.become({ name: 'over', status: 'ended', reason: 'hangup', by: null })
  expect([line.get().phase, line.get().call, line.get().other]).toEqual(['incoming', second.call, undefined])
})

test('[TAKE1] a call at another device goes on here, unless there is a call already', () => {
  const there = machine()
  const { client, rings } = standInClient()
  const line = createLine(client)
  line.configure({ media: { environment: there.environment, storage: null } })
  const taken = standInCall('incoming')
  taken.become({ name: 'connected' })
  let takes = 0
  const takeable = {
    take() {
      takes++
      return taken.call
    },
  }
  line.attach()
  rings()
  line.take(takeable)
  expect(takes).toBe(0)
  expect(line.get().phase).toBe('incoming')
  const other = createLine(standInClient().client)
  other.configure({ media: { environment: there.environment, storage: null } })
  other.take(takeable)
  expect([takes, other.get().call, other.get().phase]).toEqual([1, taken.call, 'connecting'])
  expect(there.attempts.length).toBe(1)
})

test('[GROUP1] "Call again" calls the group again, and not the member that answered', () => {
  const { client, outgoing } = standInClient()
  const wishes: unknown[] = []
  const call = (wish: unknown) => {
    wishes.push(wish)
    return outgoing.call
  }
  const calling = Object.assign(client, { call })
  const there = machine()
  const again = (place: boolean) => {
    const line = createLine(calling)
    line.configure({ media: { environment: there.environment, storage: null } })
    if (place) line.place({ group: 'support', role: 'agent', displayName: 'Support' })
    else line.resume(outgoing.call)
    outgoing.become({ name: 'over', status: 'ended', reason: 'hangup', by: null })
    line.callAgain()
    return wishes.splice(0).at(-1)
  }
  Object.assign(outgoing.call, { group: 'support' })
  expect(again(true)).toEqual({ group: 'support', role: 'agent', displayName: 'Support' })
  Object.assign(outgoing.call, { state: { name: 'connected' } })
  expect(again(false)).toMatchObject({ group: 'support', role: 'agent' })
})
