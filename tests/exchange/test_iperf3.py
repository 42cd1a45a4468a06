"""iperf3's JSON and text: what arrived, decimal bits, amounts of 2^20 bytes, and the traps of its versions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.samples import figures, noted, read, sample

from fabricbench.errors import UsageError
from fabricbench.exchange.import_options import ImportOptions
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run

JSON, TEXT = sample("iperf3-tcp.json"), sample("iperf3-tcp.txt")
RECEIVED = 94147839.740950361


def altered(**end: Any) -> str:
    """The sample with other values at its end, None taking one away."""
    document = json.loads(JSON)
    document["end"] = {name: one for name, one in (document["end"] | end).items() if one is not None}
    return json.dumps(document)


def test_json_is_what_arrived_in_writes_of_its_block_size():
    found = read(JSON)
    (one,) = found.cells
    assert (one.pattern.value, one.layer, one.message_bytes, one.values) == ("stream", Layer.TCP, 131072, (RECEIVED,))
    assert (one.ranks, one.parameters, found.version, found.notes) == (2, (), "3.12", ())
    assert found.started_unix_ns == 1795361251 * 10**9


def test_text_has_the_receivers_line_and_three_digits():
    (one,) = read(TEXT).cells
    assert (one.pattern.value, one.layer, one.message_bytes, one.values) == ("stream", Layer.TCP, None, (1.27e9,))
    assert one.printed_step == pytest.approx(1e7)
    assert read(TEXT).notes == ()


def test_a_size_that_the_text_does_not_tell_is_asked_for(tmp_path: Path):
    (tmp_path / "a.txt").write_text(TEXT)
    with pytest.raises(UsageError, match="does not tell the message size of its stream") as raised:
        import_run(tmp_path / "run", {"eth": [tmp_path / "a.txt"]})
    assert raised.value.hint == "say it, --message-bytes 64 for instance"
    import_run(tmp_path / "run", {"eth": [tmp_path / "a.txt"]}, ImportOptions(message_bytes=131072))
    row = Run.open(tmp_path / "run").launch_quantiles().select("layer", "message_bytes", "launch_value").row(0)
    assert row == ("tcp", 131072, 1.27e9)


def test_a_verbose_text_tells_size_and_version():
    detail = "Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 2 second test, tos 0"
    text = "iperf 3.12\n" + TEXT.replace("[ ID] Interval", f"{detail}\n[ ID] Interval", 1)
    assert (read(text).cells[0].message_bytes, read(text).version) == (131072, "3.12")


def test_the_sum_of_streams_counts_and_their_number_is_a_parameter():
    total = "[SUM]   0.00-2.01   sec   608 MBytes  2.54 Gbits/sec                  receiver"
    other = TEXT.splitlines()[-3].replace("[  6]", "[  8]")
    text = TEXT.replace("\n\niperf Done.", f"\n{other}\n{total}\n\niperf Done.")
    (one,) = read(text).cells
    assert (one.values, dict(one.parameters)) == ((2.54e9,), {"flows": 2})
    without = TEXT.replace("\n\niperf Done.", f"\n{other}\n\niperf Done.")
    with pytest.raises(UsageError, match="the line of the sum of its streams is missing"):
        read(without)


def test_both_directions_are_added_in_text_and_json():
    text = TEXT.replace("[  6]   0.00-2.0", "[  6][TX-C]   0.00-2.0")
    back = "[  8][RX-C]   0.00-2.01   sec   239 MBytes  1.00 Gbits/sec                  receiver"
    text = text.replace("\n\niperf Done.", f"\n{back}\n\niperf Done.")
    (one,) = read(text).cells
    assert (one.pattern.value, one.values) == ("bistream", (2.27e9,))
    document = json.loads(altered(sum_received_bidir_reverse=json.loads(JSON)["end"]["sum_received"]))
    document["start"]["test_start"]["bidir"] = 1
    (one,) = read(json.dumps(document)).cells
    assert (one.pattern.value, one.values[0]) == ("bistream", pytest.approx(2 * RECEIVED))


def test_a_direction_that_wrote_over_the_other_is_refused():
    text = JSON.replace('"sum_received":\t{', '"sum_received":\t{"bytes": 1},\n"sum_received": {').replace(
        '"reverse":\t0', '"bidir":\t1, "reverse":\t0'
    )
    with pytest.raises(UsageError, match="one direction over the other"):
        read(text)


def test_udp_of_old_versions_tells_what_was_sent_from_which_the_loss_is_taken():
    sent = {"bytes": 58904640, "seconds": 5.0, "bits_per_second": 94247424.0, "packets": 1000, "lost_packets": 100}
    text = altered(sum_received=None, sum_sent=None, sum=sent).replace('"TCP"', '"UDP"')
    (one,) = read(text).cells
    assert (one.layer, one.values[0]) == (Layer.UDP, pytest.approx(94247424.0 * 0.9))
    (note,) = read(text).notes
    assert (note.kind, "sent" in note.why) == (ImportNoteKind.READ_AS, True)


def test_a_document_that_is_written_twice_counts_once_and_two_documents_are_two():
    assert len(read(JSON + JSON).cells) == 1
    assert len(read(JSON + JSON.replace("94147839.740950361", "94147839.740950362")).cells) == 2


def test_a_stream_of_events_is_the_same_document():
    document = json.loads(JSON)
    lines = [{"event": "start", "data": document["start"]}, {"event": "end", "data": document["end"]}]
    assert figures("".join(f"{json.dumps(one)}\n" for one in lines)) == figures(JSON)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JSON[:4000], "its JSON is not whole"),
        (
            JSON.rstrip()[:-1] + ', "error": "the server has terminated"}',
            "its test failed: 'the server has terminated'",
        ),
        (JSON.replace("94147839.740950361", "-nan"), "bits_per_second is 'None', which is no number"),
        (JSON.replace("94147839.740950361", "74147839.740950361"), "not that of its bytes and seconds"),
        (altered(sum_received=None), "has no sum of what was received"),
    ],
    ids=["cut", "error", "nan", "contradiction", "no sum"],
)
def test_json_that_is_not_whole_or_contradicts_itself_is_refused(text: str, said: str):
    with pytest.raises(UsageError, match=re.escape(said)):
        read(text)


def test_bytes_of_the_text_are_binary_and_its_bits_decimal():
    # 304 x 2^20 B in 2.01 s are 151.2 x 2^20 B/s.
    text = TEXT.replace("304 MBytes  1.27 Gbits/sec", "304 MBytes   151 MBytes/sec")
    assert figures(text) == [("stream", None, 151 * 8 * 2**20)]


@pytest.mark.parametrize("rate", ["1.37 Gbits/sec", "nan Gbits/sec", "1.27 Mbits/sec", "1.27 Gbit"])
def test_a_total_that_its_amount_denies_is_no_result(rate: str):
    with pytest.raises(UsageError, match="left out"):
        read(TEXT.replace("1.27 Gbits/sec                  receiver", f"{rate}                  receiver"))


def test_a_text_that_ends_before_its_totals_says_so():
    with pytest.raises(UsageError, match="no total of the receiver's follows"):
        read(TEXT[: TEXT.index("- - -")])
    whole_before = TEXT + TEXT[: TEXT.index("- - -")]
    assert (len(figures(whole_before)), noted(whole_before)) == (1, [(ImportNoteKind.CUT, 12)])


def test_reverse_and_udp_are_told():
    reverse = TEXT.replace("[  6] local", "Reverse mode, remote host 10.98.1.2 is sending\n[  6] local")
    assert dict(read(reverse).cells[0].parameters) == {"direction": "reverse"}
    udp = "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams"
    text = TEXT.replace("[ ID] Interval           Transfer     Bitrate         Retr", udp)
    assert read(text).cells[0].layer is Layer.UDP


@pytest.mark.parametrize(
    ("moved", "rate", "why"),
    [
        ("408 MBytes  1.70", "1.70", "408 MBytes arrived, more than the 306 MBytes that were sent"),
        ("204 MBytes   851 Mbits", "", "204 MBytes arrived of 306 MBytes that were sent, and TCP loses none"),
    ],
)
def test_what_arrived_is_not_more_than_what_was_sent_and_of_tcp_not_much_less(moved: str, rate: str, why: str):
    text = TEXT.replace("304 MBytes  1.27 Gbits" if not rate else "304 MBytes  1.27", moved)
    with pytest.raises(UsageError, match=why):
        read(text)
    assert len(read(text.replace("0   5.80 MBytes", "0   5.80 MBytes       (omitted)")).cells) == 1
    assert len(read(text.replace("306 MBytes  1.28 Gbits", "0.00 Bytes  0.00 bits")).cells) == 1


def test_udp_may_lose_much():
    udp = "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams"
    text = TEXT.replace("[ ID] Interval           Transfer     Bitrate         Retr", udp)
    assert len(read(text.replace("304 MBytes  1.27 Gbits", "204 MBytes   851 Mbits")).cells) == 1


def test_json_in_which_more_arrived_than_was_sent_is_refused():
    sent = json.loads(JSON)["end"]["sum_sent"]
    for factor, why in ((0.5, "arrived, more than the"), (2, "that were sent, and TCP loses none")):
        text = altered(sum_sent=sent | {"bytes": int(sent["bytes"] * factor)})
        assert len(read(text).cells) == 1  # it omits a second, after which the two ends count other bytes
        with pytest.raises(UsageError, match=why):
            read(text.replace('"omit": 1', '"omit": 0'))
