// The page of the media measurement. measure-media.ts drives it through `bench`, in one of four ways to make a call.
import { createCallClient } from '../../client/src/client.ts'
import { createCallMedia } from '../../client/src/media/call-media.ts'

const LOCAL_MEDIA = { audio: true, video: { width: 640, height: 480 } }

let stream
let way
let clickedAt
let firstFrame

const now = () => performance.timeOrigin + performance.now()

/** Resolves with the time at which the first video frame of `remote` was presented. */
function frameOf(remote, elementId) {
  const video = document.getElementById(elementId)
  video.srcObject = remote
  return new Promise((resolve) => {
    video.requestVideoFrameCallback((presented) => resolve(performance.timeOrigin + presented))
  })
}

function newConnection(elementId) {
  const connection = new RTCPeerConnection()
  for (const track of stream.getTracks()) connection.addTrack(track, stream)
  const frame = new Promise((resolve) => {
    connection.ontrack = ({ track, streams }) => {
      if (track.kind === 'video') resolve(frameOf(streams[0], elementId))
    }
  })
  return { connection, frame }
}

/** One end of a bare call: what it has to say goes to `send`. */
function newEnd(elementId, send) {
  const { connection, frame } = newConnection(elementId)
  const early = []
  connection.onicecandidate = ({ candidate }) => {
    if (candidate) send({ candidate })
  }
  async function describe() {
    await connection.setLocalDescription()
    send({ sdp: connection.localDescription })
  }
  return {
    frame,
    offer: describe,
    async receive({ sdp, candidate }) {
      if (candidate && !connection.remoteDescription) early.push(candidate)
      else if (candidate) await connection.addIceCandidate(candidate)
      if (!sdp) return
      await connection.setRemoteDescription(sdp)
      for (const waiting of early.splice(0)) void connection.addIceCandidate(waiting)
      if (sdp.type === 'offer') await describe()
    },
    close: () => connection.close(),
  }
}

/** No service at all: both ends in this page, signaling by function call. */
function onePage() {
  let ends = []
  return {
    call() {
      const left = newEnd('first', (said) => right.receive(said))
      const right = newEnd('second', (said) => left.receive(said))
      ends = [left, right]
      firstFrame = Promise.all(ends.map(({ frame }) => frame)).then((frames) => Math.max(...frames))
      void left.offer()
    },
    hangUp() {
      for (const end of ends) end.close()
    },
  }
}

async function open(url, protocols, receive) {
  const socket = new WebSocket(url, protocols)
  socket.onmessage = ({ data }) => receive(JSON.parse(data))
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = () => reject(new Error(`${url} was not reached`))
  })
  return (message) => socket.send(JSON.stringify(message))
}

/** A bare relay between two pages: the caller offers at once, and the callee answers whatever comes. */
async function bareRelay({ url, id, peerId }) {
  let end
  function begin() {
    end = newEnd('first', (said) => send({ to: peerId, ...said }))
    firstFrame = end.frame
  }
  const send = await open(`${url}?id=${id}`, [], (said) => {
    if (said.sdp?.type === 'offer') begin()
    void end?.receive(said)
  })
  return {
    call() {
      begin()
      void end.offer()
    },
    hangUp() {
      end.close()
      end = undefined
    },
  }
}

/** Ringwire by its interface alone: the caller offers when the callee has accepted, as the phone of the README. */
async function plainPhone({ url, token, peerId }) {
  let end
  let call_uuid
  const entered = Promise.withResolvers()
  function say({ sdp, candidate }) {
    if (candidate) send({ event: 'webrtc.ice_candidate', data: { call_uuid, candidate } })
    else send({ event: `webrtc.${sdp.type}`, data: { call_uuid, sdp } })
  }
  function begin() {
    end = newEnd('first', say)
    firstFrame = end.frame
  }
  const send = await open(url, ['jwt', token], ({ event, data, error }) => {
    if (event === 'auth.ok') entered.resolve()
    if (event === 'call.error') document.title = `call.error ${error.code}`
    if (event === 'call.ringing') {
      call_uuid = data.call_uuid
      begin()
      send({ event: 'call.accept', data: { call_uuid } })
    }
    if (event === 'call.accepted') {
      call_uuid = data.call_uuid
      void end.offer()
    }
    if (event.startsWith('webrtc.')) void end.receive(data)
  })
  await entered.promise
  return {
    call() {
      begin()
      send({ event: 'call.invite', data: { callee_user_id: peerId, callee_role: 'callee', call_type: 'video' } })
    },
    hangUp(isCaller) {
      if (isCaller) send({ event: 'call.end', data: { call_uuid } })
      end.close()
    },
  }
}

/** Ringwire by its SDK. */
async function sdkPhone({ tokenUrl, peerId }) {
  let current
  const client = createCallClient({ getToken: async () => (await fetch(tokenUrl)).json() })
  function join(call) {
    current = call
    const media = createCallMedia(call, { client, media: stream })
    firstFrame = frameOf(media.state.remote, 'first')
    media.on('error', ({ message }) => (document.title = message))
    void media.start()
  }
  client.on('incoming', (call) => {
    join(call)
    void call.accept()
  })
  const online = new Promise((resolve) => client.on('state', ({ name }) => name === 'online' && resolve()))
  client.connect()
  await online
  return {
    call: () => join(client.call({ userId: peerId, role: 'callee', callType: 'video' })),
    hangUp: (isCaller) => (isCaller ? current.end() : undefined),
  }
}

const ways = { onePage, bareRelay, plainPhone, sdkPhone }

document.getElementById('call').onclick = () => {
  clickedAt = now()
  way.call()
}

globalThis.bench = {
  async prepare(name, options) {
    stream = await navigator.mediaDevices.getUserMedia(LOCAL_MEDIA)
    way = await ways[name](options)
  },
  clickedAt: () => clickedAt,
  /** When the peer's first frame was seen here; in one page, the later of both. */
  async firstFrame() {
    while (firstFrame === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    return firstFrame
  },
  async hangUp(isCaller) {
    await way.hangUp(isCaller)
    firstFrame = undefined
  },
}
