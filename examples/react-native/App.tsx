import type { Call, CallClient } from '@ringwire/client'
import type { CallMedia } from '@ringwire/client/media'
import { useCall, useCallClient, useCallMedia } from '@ringwire/client/react'
import { viewOf } from '@ringwire/client/react-native'
import { Button, SafeAreaView, StyleSheet, Text } from 'react-native'
import { RTCView } from 'react-native-webrtc'
import { client, dial, mediaOf } from './src/phone.ts'

export function App() {
  return <Phone client={client} />
}

function Phone({ client }: { client: CallClient }) {
  const { state, calls } = useCallClient(client)
  const [call] = calls
  return (
    <SafeAreaView style={styles.screen}>
      <Text>{state.name}</Text>
      {call ? <Shown call={call} /> : <Button title="Call Ben" onPress={() => dial('ben', 'agent', 'video')} />}
    </SafeAreaView>
  )
}

/** A call that rings here is answered on the system's screen. */
function Shown({ call }: { call: Call }) {
  const state = useCall(call)
  const media = mediaOf(call)
  return (
    <>
      <Text>{`${call.peer.displayName ?? call.peer.userId}: ${state?.name}`}</Text>
      {media && <Picture media={media} />}
      <Button title="Hang up" onPress={() => void call.end()} />
    </>
  )
}

function Picture({ media }: { media: CallMedia }) {
  const { remote, local, muted, name } = useCallMedia(media)
  const views = [viewOf(remote), viewOf(local)]
  return (
    <>
      {views.map((view) => view && <RTCView key={view.key} streamURL={view.streamURL} style={styles.picture} />)}
      <Text>{name}</Text>
      <Button title={muted.audio ? 'Unmute' : 'Mute'} onPress={() => void media.setMuted('audio', !muted.audio)} />
      <Button
        title={muted.video ? 'Camera on' : 'Camera off'}
        onPress={() => void media.setMuted('video', !muted.video)}
      />
    </>
  )
}

const styles = StyleSheet.create({ screen: { flex: 1 }, picture: { flex: 1 } })
