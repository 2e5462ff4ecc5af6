// The page of the media measurement: WebSocket and RTCPeerConnection, nothing else. main.ts drives it through `bench`.

const LOCAL_MEDIA = { audio: true, video: { width: 640, height: 480 } }

let stream
let socket
let connection
let peerInPage
let early = []
let callUuid
let side
let clickedAt
let firstFrame

const now = () => performance.timeOrigin + performance.now()

function send(event, data) {
  socket.send(JSON.stringify({ event, data }))
}

/** Resolves with the time at which the first video frame of `remote` was presented. */
function frameOf(remote, elementId) {
  const video = document.getElementById(elementId)
  video.srcObject = remote
  return new Promise((resolve) => {
    video.requestVideoFrameCallback((presented) => resolve(performance.timeOrigin + presented))
  })
}

function newConnection(elementId) {
  const created = new RTCPeerConnection()
  for (const track of stream.getTracks()) created.addTrack(track, stream)
  const frame = new Promise((resolve) => {
    created.ontrack = ({ track, streams }) => {
      if (track.kind === 'video') resolve(frameOf(streams[0], elementId))
    }
  })
  return { created, frame }
}

function begin() {
  const { created, frame } = newConnection('first')
  connection = created
  early = []
  firstFrame = frame
  connection.onicecandidate = ({ candidate }) => {
    if (candidate) send('webrtc.ice_candidate', { call_uuid: callUuid, candidate })
  }
}

async function remoteDescription(sdp) {
  await connection.setRemoteDescription(sdp)
  for (const candidate of early.splice(0)) await connection.addIceCandidate(candidate)
}

const handlers = {
  'call.ringing'({ call_uuid }) {
    callUuid = call_uuid
    begin()
    send('call.accept', { call_uuid })
  },
  async 'call.accepted'({ call_uuid }) {
    callUuid = call_uuid
    await connection.setLocalDescription()
    send('webrtc.offer', { call_uuid, sdp: connection.localDescription })
  },
  async 'webrtc.offer'({ call_uuid, sdp }) {
    await remoteDescription(sdp)
    await connection.setLocalDescription()
    send('webrtc.answer', { call_uuid, sdp: connection.localDescription })
  },
  async 'webrtc.answer'({ sdp }) {
    await remoteDescription(sdp)
  },
  async 'webrtc.ice_candidate'({ candidate }) {
    if (connection.remoteDescription) await connection.addIceCandidate(candidate)
    else early.push(candidate)
  },
}

function connect(url, token, ownSide) {
  side = ownSide
  socket = new WebSocket(url, ['jwt', token])
  return new Promise((resolve, reject) => {
    socket.onerror = () => reject(new Error('The service was not reached'))
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data)
      if (message.event === 'auth.ok') resolve()
      else if (message.event === 'call.error') document.title = `call.error ${message.error.code}`
      else handlers[message.event]?.(message.data)
    }
  })
}

/** The reference: both ends in this page, signaling by function call. */
async function callInPage() {
  const left = newConnection('first')
  const right = newConnection('second')
  connection = left.created
  peerInPage = right.created
  firstFrame = Promise.all([left.frame, right.frame]).then((frames) => Math.max(...frames))
  for (const [from, to] of [
    [left, right],
    [right, left],
  ]) {
    const queue = []
    from.created.onicecandidate = ({ candidate }) => {
      if (!candidate) return
      if (to.created.remoteDescription) to.created.addIceCandidate(candidate)
      else queue.push(candidate)
    }
    from.flush = () => queue.splice(0).map((candidate) => to.created.addIceCandidate(candidate))
  }
  await left.created.setLocalDescription()
  await right.created.setRemoteDescription(left.created.localDescription)
  left.flush()
  await right.created.setLocalDescription()
  await left.created.setRemoteDescription(right.created.localDescription)
  right.flush()
}

document.getElementById('call').onclick = () => {
  clickedAt = now()
  if (side === undefined) {
    callInPage()
    return
  }
  begin()
  send('call.invite', { callee_user_id: 'media-callee', callee_role: 'callee', call_type: 'video' })
}

globalThis.bench = {
  async prepare() {
    stream = await navigator.mediaDevices.getUserMedia(LOCAL_MEDIA)
  },
  connect,
  clickedAt: () => clickedAt,
  /** When the peer's first frame was seen here; in one page, the later of both. */
  async firstFrame() {
    while (firstFrame === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    return firstFrame
  },
  hangUp() {
    if (side === 'caller') send('call.end', { call_uuid: callUuid })
    connection.close()
    peerInPage?.close()
    firstFrame = undefined
  },
}
