// Session descriptions of the size that browsers write: an audio and a video section with Chromium's usual codecs.

const FINGERPRINT = Array.from({ length: 32 }, (_, i) => (i * 7 + 16).toString(16).toUpperCase().slice(-2)).join(':')

const AUDIO = [
  '111 opus/48000/2',
  '63 red/48000/2',
  '9 G722/8000',
  '0 PCMU/8000',
  '8 PCMA/8000',
  '126 telephone-event/8000',
]
const VIDEO = ['96 VP8', '102 H264', '45 AV1', '98 VP9', '124 H264', '125 H265']
const FORMAT = 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f'
const FEEDBACK = ['goog-remb', 'transport-cc', 'ccm fir', 'nack', 'nack pli']
const EXTENSIONS = [
  'urn:ietf:params:rtp-hdrext:toffset',
  'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
  'urn:3gpp:video-orientation',
  'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
  'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay',
  'urn:ietf:params:rtp-hdrext:sdes:mid',
]

function transport(mid: string, setup: string): string[] {
  return [
    'c=IN IP4 0.0.0.0',
    'a=rtcp:9 IN IP4 0.0.0.0',
    'a=ice-ufrag:Yx4k',
    'a=ice-pwd:Wq0sUjDkQ2mYt8xVbN3zLfHc',
    'a=ice-options:trickle',
    `a=fingerprint:sha-256 ${FINGERPRINT}`,
    `a=setup:${setup}`,
    `a=mid:${mid}`,
    'a=sendrecv',
    'a=rtcp-mux',
    'a=rtcp-rsize',
  ]
}

function codecs(list: readonly string[], clock: string, feedback: readonly string[]): string[] {
  return list.flatMap((codec) => {
    const type = codec.slice(0, codec.indexOf(' '))
    return [
      `a=rtpmap:${codec}${clock}`,
      `a=fmtp:${type} ${FORMAT}`,
      ...feedback.map((kind) => `a=rtcp-fb:${type} ${kind}`),
    ]
  })
}

/** About 3 KB for an offer and 2 KB for an answer, which names fewer codecs. */
export function sessionDescription(type: 'offer' | 'answer'): { type: string; sdp: string } {
  const setup = type === 'offer' ? 'actpass' : 'active'
  const audio = type === 'offer' ? AUDIO : AUDIO.slice(0, 2)
  const video = type === 'offer' ? VIDEO : VIDEO.slice(0, 2)
  const lines = [
    'v=0',
    'o=- 4611731400430051336 2 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    'a=group:BUNDLE 0 1',
    'a=extmap-allow-mixed',
    'a=msid-semantic: WMS 4f1d6c2e-0f57-4b6c-9c0a-5d1b2a3c4e5f',
    'm=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 126',
    ...transport('0', setup),
    ...codecs(audio, '', ['transport-cc']),
    'm=video 9 UDP/TLS/RTP/SAVPF 96 102 45 98 124 125',
    ...transport('1', setup),
    ...codecs(video, '/90000', FEEDBACK),
    ...EXTENSIONS.map((uri, i) => `a=extmap:${i + 1} ${uri}`),
    'a=ssrc-group:FID 2231627014 632943048',
    'a=ssrc:2231627014 cname:4TOk42mSjXCkVIa6',
    'a=ssrc:632943048 cname:4TOk42mSjXCkVIa6',
  ]
  return { type, sdp: `${lines.join('\r\n')}\r\n` }
}
