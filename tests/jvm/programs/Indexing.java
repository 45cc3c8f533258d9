package org.example.programs;

import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Indexes texts by Lucene, and searches them. Arguments: seconds. */
public final class Indexing {
    private static final int WORDS = 5_000;

    private Indexing() {}

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(1);
        Deadline.repeat(arguments, round -> {
            ByteBuffersDirectory directory = new ByteBuffersDirectory();
            try (IndexWriter writer =
                    new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
                for (int document = 0; document < 500; document++) {
                    writer.addDocument(text(random));
                }
            }
            search(directory, random);
        });
    }

    private static Document text(Random random) {
        StringBuilder text = new StringBuilder();
        for (int word = 0; word < 400; word++) {
            // Few words are frequent, as in languages.
            int rank = (int) (WORDS * Math.pow(random.nextDouble(), 3));
            text.append("word").append(Integer.toString(rank * 7919, 36)).append(' ');
        }
        Document document = new Document();
        document.add(new TextField("text", text.toString(), Field.Store.YES));
        return document;
    }

    private static void search(ByteBuffersDirectory directory, Random random) throws Exception {
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (int query = 0; query < 50; query++) {
                String word = "word" + Integer.toString(random.nextInt(WORDS) * 7919, 36);
                searcher.search(new TermQuery(new Term("text", word)), 10);
            }
        }
    }
}
